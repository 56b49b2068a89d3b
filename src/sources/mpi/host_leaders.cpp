// host_leaders.cpp: the first rank of each host compares the host's clock with that of rank 0, by messages.
#include "sources/mpi/host_leaders.h"

#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <string>

#include <marey/clock_exchange.h>
#include <marey/observe.h>

namespace marey::mpi {
namespace {

constexpr int kTag = 0, kExchanges = 8;

struct Answer {
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
        Answer answer{};
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
        Answer made{};
        PMPI_Recv(nullptr, 0, MPI_BYTE, peer, kTag, comm, MPI_STATUS_IGNORE);
        made.arrived_ns = trace_clock_ns();
        std::copy_n(own.begin(), std::min(own.size(), made.host.size()), made.host.begin());
        made.answered_ns = trace_clock_ns();
        PMPI_Send(&made, sizeof made, MPI_BYTE, peer, kTag, comm);
    }
}

}  // namespace

void take_rank() {
    int rank = 0;
    if (PMPI_Comm_rank(MPI_COMM_WORLD, &rank) == MPI_SUCCESS) set_node_id(rank);
}

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

}  // namespace marey::mpi
