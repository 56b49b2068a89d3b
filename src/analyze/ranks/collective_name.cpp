// collective_name.cpp: recognises collectives and other communication by the names of ranges.
#include "analyze/ranks/collective_name.h"

#include <algorithm>
#include <iterator>

namespace marey {
namespace {

/// The letters of a name in lower case: "ncclDevKernel_AllReduce_Sum" -> "nccldevkernelallreducesum".
std::string letters(std::string_view name) {
    std::string text;
    for (const char c : name) {
        if (c >= 'A' && c <= 'Z') {
            text += static_cast<char>(c - 'A' + 'a');
        } else if (c >= 'a' && c <= 'z') {
            text += c;
        }
    }
    return text;
}

template <std::size_t kCount>
bool starts_with_any(std::string_view name, const std::string_view (&starts)[kCount]) {
    return std::ranges::any_of(starts, [&](std::string_view start) { return name.starts_with(start); });
}

}  // namespace

CommunicationKind communication_kind(std::string_view name) {
    using enum CommunicationKind;
    static constexpr std::string_view kKernels[] = {"ncclDevKernel", "ncclKernel", "rcclDevKernel",
                                                    "rcclKernel"};
    static constexpr std::string_view kCollectives[] = {"gloo:", "mpi:", "ucc:"};
    static constexpr std::string_view kCalls[] = {"nccl:", "c10d::", "record_param_comms", "MPI_Wait"};
    if (starts_with_any(name, kKernels)) return Kernel;
    if (starts_with_any(name, kCollectives)) return Collective;
    if (starts_with_any(name, kCalls) || name.find("distributed_c10d.py(") != name.npos) return Call;
    if (name.starts_with("MPI_")) return is_synchronising(name) || name == "MPI_Bcast" ? Collective : Call;
    return None;
}

bool is_synchronising(std::string_view name) {
    static constexpr std::string_view kWords[] = {"allreduce", "allgather", "reducescatter", "alltoall",
                                                  "barrier"};
    // Calls that return before the collective is complete.
    static constexpr std::string_view kStarting[] = {"MPI_I"};
    if (starts_with_any(name, kStarting)) return false;
    const std::string text = letters(name);
    return std::ranges::any_of(kWords, [&](std::string_view word) { return text.find(word) != text.npos; });
}

std::string operation_name(std::string_view name) {
    struct Operation {
        std::string_view letters, text;
    };
    static constexpr Operation kOperations[] = {{"allreduce", "all_reduce"},
                                                {"allgather", "all_gather"},
                                                {"reducescatter", "reduce_scatter"},
                                                {"alltoall", "all_to_all"},
                                                {"barrier", "barrier"},
                                                {"broadcast", "broadcast"},
                                                {"sendrecv", "send and recv"},
                                                {"reduce", "reduce"},
                                                {"gather", "gather"},
                                                {"scatter", "scatter"},
                                                {"send", "send"},
                                                {"recv", "recv"}};
    const CommunicationKind kind = communication_kind(name);
    if (kind == CommunicationKind::None || name.starts_with("MPI_")) return std::string(name);
    const std::string text = letters(name);
    for (const Operation& operation : kOperations) {
        if (text.find(operation.letters) != text.npos) return std::string(operation.text);
    }
    return std::string(name);
}

bool is_point_to_point(std::string_view operation) {
    static constexpr std::string_view kWords[] = {"send", "recv", "send and recv"};
    return std::ranges::find(kWords, operation) != std::end(kWords);
}

}  // namespace marey
