// collective_name.h: recognises collectives and other communication by the names of ranges.
#pragma once

#include <string>
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

/// The operation of a collective, the same on every rank: "all_reduce" for "gloo:all_reduce" and for all of
/// NCCL's kernels that do that, "MPI_Allreduce" for itself. Other names are returned unchanged.
std::string operation_name(std::string_view name);

/// Whether the name of a collective's operation is that of a message between two ranks.
bool is_point_to_point(std::string_view operation);

}  // namespace marey
