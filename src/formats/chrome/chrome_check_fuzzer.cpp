// chrome_check_fuzzer.cpp: any bytes can be checked safely, and every finding names a known rule.
#include <cstdint>
#include <cstdlib>

#include "formats/chrome/check.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    marey::FindingList findings;
    marey::check_chrome_json({reinterpret_cast<const char*>(data), size}, findings);
    for (const marey::Finding& finding : findings.take()) {
        bool is_known = false;
        for (const marey::ValidationRule& rule : marey::validation_rules())
            is_known |= rule.name == finding.rule;
        if (!is_known || finding.count == 0) std::abort();
    }
    return 0;
}
