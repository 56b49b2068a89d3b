// mpi_calls.cpp: libmarey_mpi: records the MPI calls of a program, through MPI's profiling interface (PMPI).
#include <mpi.h>

#include <marey/marey.h>

#include "sources/mpi/communicators.h"
#include "sources/mpi/host_leaders.h"

// Each function stands in front of MPI's own, which has the name PMPI_...; the linker or LD_PRELOAD chooses.
namespace {

using marey::mpi::next_collective;
using marey::mpi::NumberedCollective;

std::int64_t bytes_of(int count, MPI_Datatype type) {
    int size = 0;
    if (count <= 0 || PMPI_Type_size(type, &size) != MPI_SUCCESS) return 0;
    return std::int64_t{count} * size;
}

void start() {
    marey::mpi::take_rank();
    marey::mpi::compare_clocks();
}

}  // namespace

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
    marey::mpi::compare_clocks();
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
