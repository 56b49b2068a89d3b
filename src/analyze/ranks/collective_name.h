// collective_name.h: recognises collectives and other communication by the names of ranges.
#pragma once

#include <string_view>

namespace marey {

/// The role of a range in a distributed program.
enum class CommunicationKind : unsigned char {
    None,
    Kernel,      ///< a device's kernel that is a collective (NCCL, RCCL)
    Collective,  ///< a range that lasts from entering to leaving a collective
    Call,        ///< other host code of communication: calls that only start a collective, or wait for one
};
CommunicationKind communication_kind(std::string_view name);

/// Whether no rank can leave such a collective before every rank has entered it.
bool is_synchronising(std::string_view name);

}  // namespace marey
