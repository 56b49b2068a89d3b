// mpi_calls.cpp: libmarey_mpi: records the MPI calls of a program, through MPI's profiling interface (PMPI).
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include <marey/clock_exchange.h>
#include <marey/detail/thread_safety.h>
#include <marey/marey.h>
#include <marey/observe.h>

namespace marey::mpi {
namespace {

/// The same on every rank that takes part.
struct NumberedCollective {
    std::int64_t group = 0;
    std::int64_t sequence = 0;
};

/// Kept with the communicator, as an attribute of it.
struct Numbers {
    std::int64_t group = 0;
    std::int64_t next = 0;
};

Mutex mutex;  // while a communicator gets its numbers, and takes the next one

int forget(MPI_Comm, int, void* numbers, void*) {
    delete static_cast<Numbers*>(numbers);
    return MPI_SUCCESS;
}

int numbers_key() {
    static const int key = [] {
        int made = MPI_KEYVAL_INVALID;
        PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &made, nullptr);
        return made;
    }();
    return key;
}

/// A number that all ranks of the communicator compute alike: of their ranks in MPI_COMM_WORLD, and of how
/// many communicators with the same ranks had a collective before. All ranks use these in one order. 0 is
/// MPI_COMM_WORLD.
std::int64_t group_number(MPI_Comm comm) {
    if (comm == MPI_COMM_WORLD) return 0;
    MPI_Group own = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
    int size = 0;
    if (PMPI_Comm_group(comm, &own) != MPI_SUCCESS || PMPI_Comm_group(MPI_COMM_WORLD, &world) != MPI_SUCCESS)
        return 0;
    PMPI_Group_size(own, &size);
    std::vector<int> ranks(static_cast<std::size_t>(size)), in_world(ranks.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    PMPI_Group_translate_ranks(own, size, ranks.data(), world, in_world.data());
    PMPI_Group_free(&own);
    PMPI_Group_free(&world);
    std::uint64_t hash = 14695981039346656037u;
    for (const int rank : in_world) hash = (hash ^ static_cast<std::uint64_t>(rank)) * 1099511628211u;
    static auto& seen = *new std::map<std::uint64_t, std::uint64_t>;
    hash = (hash ^ seen[hash]++) * 1099511628211u;
    return static_cast<std::int64_t>(hash >> 1);
}

/// Any thread, as far as MPI allows calls on one communicator at all.
NumberedCollective next_collective(MPI_Comm comm) {
    const ScopedLock lock(mutex);
    Numbers* numbers = nullptr;
    int is_known = 0;
    if (PMPI_Comm_get_attr(comm, numbers_key(), static_cast<void*>(&numbers), &is_known) != MPI_SUCCESS)
        return {};
    if (is_known == 0) {
        auto made = std::make_unique<Numbers>();
        made->group = group_number(comm);
        if (PMPI_Comm_set_attr(comm, numbers_key(), made.get()) != MPI_SUCCESS) return {};
        numbers = made.release();
    }
    return {numbers->group, numbers->next++};
}

constexpr int kTag = 0, kExchanges = 8;

struct ClockReply {
    std::int64_t arrived_ns;
    std::int64_t answered_ns;
    std::array<char, 104> host;  ///< padded with NUL
};

/// Returns a communicator of the first ranks of all hosts; MPI_COMM_NULL on other ranks.
MPI_Comm leaders() {
    MPI_Comm host = MPI_COMM_NULL, result = MPI_COMM_NULL;
    if (PMPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &host) != MPI_SUCCESS)
        return MPI_COMM_NULL;
    int rank = 0, in_world = 0;
    PMPI_Comm_rank(host, &rank);
    PMPI_Comm_rank(MPI_COMM_WORLD, &in_world);
    PMPI_Comm_free(&host);
    PMPI_Comm_split(MPI_COMM_WORLD, rank == 0 ? 0 : MPI_UNDEFINED, in_world, &result);
    return result;
}

void ask(MPI_Comm comm) {
    for (int i = 0; i < kExchanges; ++i) {
        ClockExchange exchange;
        ClockReply answer{};
        exchange.sent_ns = trace_clock_ns();
        PMPI_Send(nullptr, 0, MPI_BYTE, 0, kTag, comm);
        PMPI_Recv(&answer, sizeof answer, MPI_BYTE, 0, kTag, comm, MPI_STATUS_IGNORE);
        exchange.received_ns = trace_clock_ns();
        exchange.arrived_ns = answer.arrived_ns;
        exchange.answered_ns = answer.answered_ns;
        record_clock_exchange({answer.host.data(), strnlen(answer.host.data(), answer.host.size())},
                              exchange);
    }
}

void answer(MPI_Comm comm, int peer) {
    const std::string own = host_name();
    for (int i = 0; i < kExchanges; ++i) {
        ClockReply made{};
        PMPI_Recv(nullptr, 0, MPI_BYTE, peer, kTag, comm, MPI_STATUS_IGNORE);
        made.arrived_ns = trace_clock_ns();
        std::copy_n(own.begin(), std::min(own.size(), made.host.size()), made.host.begin());
        made.answered_ns = trace_clock_ns();
        PMPI_Send(&made, sizeof made, MPI_BYTE, peer, kTag, comm);
    }
}

/// Uses the rank in MPI_COMM_WORLD as the node id of this process.
void take_rank() {
    int rank = 0;
    if (PMPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS) set_node_id(rank);
}

/// On programs with more than one host: the first rank of each host makes a burst of exchanges with rank 0.
/// Every rank of MPI_COMM_WORLD must call it.
void compare_clocks() {
    MPI_Comm comm = leaders();
    if (comm == MPI_COMM_NULL) return;
    int rank = 0, size = 0;
    PMPI_Comm_rank(comm, &rank);
    PMPI_Comm_size(comm, &size);
    if (rank == 0) {
        for (int peer = 1; peer < size; ++peer) answer(comm, peer);
    } else {
        ask(comm);
    }
    PMPI_Comm_free(&comm);
}

std::int64_t bytes_of(int count, MPI_Datatype type) {
    int size = 0;
    if (count <= 0 || PMPI_Type_size(type, &size) != MPI_SUCCESS) return 0;
    return std::int64_t{count} * size;
}

void start() {
    take_rank();
    compare_clocks();
}

}  // namespace
}  // namespace marey::mpi

using namespace marey::mpi;

// Each function stands in front of MPI's own, which has the name PMPI_...; the linker or LD_PRELOAD chooses.
#define MAREY_MPI_COLLECTIVE(name, bytes, comm)                \
    const NumberedCollective numbered = next_collective(comm); \
    MAREY_RANGE(#name, "group", numbered.group, "sequence", numbered.sequence, "bytes", (bytes))
#define MAREY_MPI_MESSAGE(name, bytes, peer, tag) \
    MAREY_RANGE(#name, "bytes", (bytes), "peer", (peer), "tag", (tag))

extern "C" {

int MPI_Init(int* argc, char*** argv) {
    const int result = PMPI_Init(argc, argv);
    if (result == MPI_SUCCESS) start();
    return result;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
    const int result = PMPI_Init_thread(argc, argv, required, provided);
    if (result == MPI_SUCCESS) start();
    return result;
}

int MPI_Finalize() {
    compare_clocks();
    return PMPI_Finalize();
}

// ---- collectives

int MPI_Barrier(MPI_Comm comm) {
    MAREY_MPI_COLLECTIVE(MPI_Barrier, std::int64_t{0}, comm);
    return PMPI_Barrier(comm);
}

int MPI_Bcast(void* buffer, int count, MPI_Datatype type, int root, MPI_Comm comm) {
    MAREY_MPI_COLLECTIVE(MPI_Bcast, bytes_of(count, type), comm);
    return PMPI_Bcast(buffer, count, type, root, comm);
}

int MPI_Reduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, int root,
               MPI_Comm comm) {
    MAREY_MPI_COLLECTIVE(MPI_Reduce, bytes_of(count, type), comm);
    return PMPI_Reduce(send, receive, count, type, op, root, comm);
}

int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
    MAREY_MPI_COLLECTIVE(MPI_Allreduce, bytes_of(count, type), comm);
    return PMPI_Allreduce(send, receive, count, type, op, comm);
}

int MPI_Reduce_scatter_block(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op,
                             MPI_Comm comm) {
    MAREY_MPI_COLLECTIVE(MPI_Reduce_scatter_block, bytes_of(count, type), comm);
    return PMPI_Reduce_scatter_block(send, receive, count, type, op, comm);
}

int MPI_Gather(const void* send, int count, MPI_Datatype type, void* receive, int receive_count,
               MPI_Datatype receive_type, int root, MPI_Comm comm) {
    MAREY_MPI_COLLECTIVE(MPI_Gather, bytes_of(count, type), comm);
    return PMPI_Gather(send, count, type, receive, receive_count, receive_type, root, comm);
}

int MPI_Scatter(const void* send, int count, MPI_Datatype type, void* receive, int receive_count,
                MPI_Datatype receive_type, int root, MPI_Comm comm) {
    MAREY_MPI_COLLECTIVE(MPI_Scatter, bytes_of(receive_count, receive_type), comm);
    return PMPI_Scatter(send, count, type, receive, receive_count, receive_type, root, comm);
}

int MPI_Allgather(const void* send, int count, MPI_Datatype type, void* receive, int receive_count,
                  MPI_Datatype receive_type, MPI_Comm comm) {
    MAREY_MPI_COLLECTIVE(MPI_Allgather, bytes_of(receive_count, receive_type), comm);
    return PMPI_Allgather(send, count, type, receive, receive_count, receive_type, comm);
}

int MPI_Alltoall(const void* send, int count, MPI_Datatype type, void* receive, int receive_count,
                 MPI_Datatype receive_type, MPI_Comm comm) {
    MAREY_MPI_COLLECTIVE(MPI_Alltoall, bytes_of(receive_count, receive_type), comm);
    return PMPI_Alltoall(send, count, type, receive, receive_count, receive_type, comm);
}

// ---- messages

int MPI_Send(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
    MAREY_MPI_MESSAGE(MPI_Send, bytes_of(count, type), peer, tag);
    return PMPI_Send(data, count, type, peer, tag, comm);
}

int MPI_Recv(void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Status* status) {
    MAREY_MPI_MESSAGE(MPI_Recv, bytes_of(count, type), peer, tag);
    return PMPI_Recv(data, count, type, peer, tag, comm, status);
}

int MPI_Sendrecv(const void* data, int count, MPI_Datatype type, int to, int tag, void* receive,
                 int receive_count, MPI_Datatype receive_type, int from, int receive_tag, MPI_Comm comm,
                 MPI_Status* status) {
    MAREY_MPI_MESSAGE(MPI_Sendrecv, bytes_of(count, type), to, tag);
    return PMPI_Sendrecv(data, count, type, to, tag, receive, receive_count, receive_type, from, receive_tag,
                         comm, status);
}

int MPI_Isend(const void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
    MAREY_MPI_MESSAGE(MPI_Isend, bytes_of(count, type), peer, tag);
    return PMPI_Isend(data, count, type, peer, tag, comm, request);
}

int MPI_Irecv(void* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
              MPI_Request* request) {
    MAREY_MPI_MESSAGE(MPI_Irecv, bytes_of(count, type), peer, tag);
    return PMPI_Irecv(data, count, type, peer, tag, comm, request);
}

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
    MAREY_RANGE("MPI_Wait");
    return PMPI_Wait(request, status);
}

int MPI_Waitall(int count, MPI_Request requests[], MPI_Status statuses[]) {
    MAREY_RANGE("MPI_Waitall", "requests", count);
    return PMPI_Waitall(count, requests, statuses);
}

}  // extern "C"
