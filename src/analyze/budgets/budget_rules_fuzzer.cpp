// budget_rules_fuzzer.cpp: any text as rules of marey check and as a baseline.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <marey/budgets.h>
#include <marey/error.h>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    const std::string_view text(reinterpret_cast<const char*>(data), size);
    try {
        (void)marey::parse_budgets(text, "rules");
    } catch (const marey::Error&) {
    }
    try {
        (void)marey::parse_baseline(marey::baseline_json(marey::parse_baseline(text, "baseline")), "again");
    } catch (const marey::Error&) {
    }
    return 0;
}
