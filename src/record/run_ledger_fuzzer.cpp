// run_ledger_fuzzer.cpp: any bytes as the page in which the processes of a tree add up their sizes.
#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <cstdio>
#include <string>

#include <marey/merge.h>

#include "record/run_ledger.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    char tree[33];
    std::snprintf(tree, sizeof tree, "%032x", static_cast<unsigned>(getpid()));
    marey::remove_run_ledger(tree);
    if (!marey::create_run_ledger(tree, 1000)) return 0;
    const int fd = open(("/dev/shm/marey-" + std::string(tree)).c_str(), O_RDWR | O_CLOEXEC);
    // One byte says how long the file becomes, and where the others go.
    if (size > 0 && fd >= 0) {
        const off_t at = data[0] % 80;
        if (pwrite(fd, data + 1, size - 1, at) < 0 || ((data[0] & 128) != 0 && ftruncate(fd, at) != 0))
            return 0;
    }
    close(fd);
    marey::RunLedger ledger;
    std::string problem;
    if (ledger.open(tree, problem)) {
        ledger.add(100);
        static_cast<void>(ledger.would_exceed(10));
        ledger.subtract(100);
        ledger.close();
    }
    marey::remove_run_ledger(tree);
    return 0;
}
