// mpi_program.cpp: a program that uses MPI but not Marey: collectives on two communicators, and messages.
//
//   mpi_program [CODE]   exits with CODE
#include <mpi.h>

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    int rank = 0, size = 0;
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Comm half = MPI_COMM_NULL;
    MPI_Comm_split(MPI_COMM_WORLD, rank % 2, rank, &half);
    int sum = 0;
    for (int step = 0; step < 5; ++step) {
        int own = rank + step, part = 0;
        MPI_Allreduce(&own, &part, 1, MPI_INT, MPI_SUM, half);
        MPI_Allreduce(&part, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
        int received = 0;
        MPI_Request request = MPI_REQUEST_NULL;
        MPI_Irecv(&received, 1, MPI_INT, (rank + size - 1) % size, 0, MPI_COMM_WORLD, &request);
        MPI_Send(&own, 1, MPI_INT, (rank + 1) % size, 0, MPI_COMM_WORLD);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        MPI_Barrier(MPI_COMM_WORLD);
    }
    MPI_Bcast(&sum, 1, MPI_INT, 0, MPI_COMM_WORLD);
    if (rank == 0) std::printf("sum %d\n", sum);
    MPI_Comm_free(&half);
    MPI_Finalize();
    return argc > 1 ? std::atoi(argv[1]) : 0;
}
