// communicators.h: numbers the collectives of each communicator, so that those of all its ranks can be
// matched.
#pragma once

#include <mpi.h>

#include <cstdint>

namespace marey::mpi {

/// The same on every rank that takes part.
struct NumberedCollective {
    std::int64_t group = 0;
    std::int64_t sequence = 0;
};

/// Any thread, as far as MPI allows calls on one communicator at all.
NumberedCollective next_collective(MPI_Comm comm);

}  // namespace marey::mpi
