// host_leaders.h: the first rank of each host, which compares the host's clock with that of rank 0.
#pragma once

namespace marey::mpi {

/// Uses the rank in MPI_COMM_WORLD as the node id of this process.
void take_rank();

/// On programs with more than one host: the first rank of each host makes a burst of exchanges with rank 0.
/// Every rank of MPI_COMM_WORLD must call it.
void compare_clocks();

}  // namespace marey::mpi
