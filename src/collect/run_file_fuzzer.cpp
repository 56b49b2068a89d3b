// run_file_fuzzer.cpp: any bytes as the file of a process tree, and as members of one with right checksums.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <span>
#include <string>
#include <vector>

#include <marey/error.h>
#include <marey/merge.h>

#include "collect/run_file.h"
#include "trace/trace_data.h"

namespace {

void merge(std::span<const std::byte> bytes) {
    const int fd = memfd_create("tree", MFD_CLOEXEC);
    if (fd < 0) return;
    if (write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size())) {
        try {
            const std::string path = "/proc/self/fd/" + std::to_string(fd);
            const marey::MergedCaptures merged = marey::load_merged({path}, {.any_tree = true});
            const std::string damage = marey::find_damage(merged.trace.data());
            if (!damage.empty()) {
                std::fprintf(stderr, "check failed: the tables are consistent: %s\n", damage.c_str());
                std::abort();
            }
        } catch (const marey::Error&) {
        }
    }
    close(fd);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), size);
    merge(bytes);
    if (size < 2) return 0;
    std::vector<std::byte> file = marey::tree_header("01000000000000000000000000000000");
    const std::size_t members = data[0] % 3 + 1, part = (size - 1) / members;
    for (std::size_t i = 0; i < members; ++i) {
        const std::vector<std::byte> section =
            marey::tree_section(static_cast<std::int64_t>(i), bytes.subspan(1 + i * part, part));
        file.insert(file.end(), section.begin(), section.end());
    }
    merge(file);
    return 0;
}
