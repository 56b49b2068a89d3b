// communicators.cpp: numbers the collectives of each communicator.
#include "sources/mpi/communicators.h"

#include <map>
#include <memory>
#include <mutex>
#include <numeric>
#include <vector>

namespace marey::mpi {
namespace {

/// Kept with the communicator, as an attribute of it.
struct Numbers {
    std::int64_t group = 0;
    std::int64_t next = 0;
};

std::mutex mutex;

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
/// many communicators with the same ranks had a collective before. All ranks use these in one order.
std::int64_t group_number(MPI_Comm comm) {
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

}  // namespace

NumberedCollective next_collective(MPI_Comm comm) {
    const std::lock_guard lock(mutex);
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

}  // namespace marey::mpi
