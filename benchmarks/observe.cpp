// observe.cpp: cost of observers, values, shapes and allocation reports.
#include <cstdio>

#include <marey/all.h>

#include "figure.h"

namespace {

constexpr std::int64_t kCount = 1'000'000;
constexpr int kRepetitions = 15;

__attribute__((noinline)) void empty_loop(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) asm volatile("" ::: "memory");
}

__attribute__((noinline)) void ranges(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        MAREY_RANGE("benchmark");
        asm volatile("" ::: "memory");
    }
}

// Prints the time that `with` takes beyond `without`, measured alternately.
template <class With, class Without>
void print_above(const char* name, const char* against, const char* target, With with, Without without) {
    std::vector<double> above;
    std::vector<double> base;
    for (int repetition = 0; repetition < kRepetitions + 1; ++repetition) {
        const double low = bench::thread_ns(kCount, without);
        const double high = bench::thread_ns(kCount, with);
        if (repetition == 0) continue;
        base.push_back(low);
        above.push_back(high - low);
    }
    std::printf(
        "{\"name\": \"%s\", \"value\": %.3g, \"unit\": \"ns\", \"against\": \"%s\", \"against_value\": %.3g, "
        "\"target\": \"%s\"}\n",
        name, bench::median(above), against, bench::median(base), target);
    std::fflush(stdout);
}

marey::SessionOptions warm() {
    return {.max_bytes = 4 << 20, .policy = marey::Policy::Ring};
}

std::unique_ptr<marey::ObserverContext> nothing(const marey::ObservedRange&, void*) {
    return nullptr;
}

void observer_empty() {
    const auto handle = marey::add_observer(
        {.start = nothing, .end = [](const marey::ObservedRange&, marey::ObserverContext*, void*) {}});
    print_above(
        "observer_empty", "empty loop", "<= 15 ns", [] { ranges(kCount); }, [] { empty_loop(kCount); });
    marey::remove_and_drain(handle);
}

void observer_not_firing() {
    marey::Observer rare{.start = nothing};
    rare.needs_inputs = true;
    rare.sampling = 1e-6;
    marey::ObserverHandle handle = 0;
    std::vector<double> above;
    std::vector<double> base;
    for (int repetition = 0; repetition < kRepetitions + 1; ++repetition) {
        const double none = bench::thread_ns(kCount, [] { ranges(kCount); });
        handle = marey::add_observer(rare);
        const double with = bench::thread_ns(kCount, [] { ranges(kCount); });
        marey::remove_and_drain(handle);
        if (repetition == 0) continue;
        base.push_back(none);
        above.push_back(with - none);
    }
    std::printf(
        "{\"name\": \"observer_not_firing\", \"value\": %.3g, \"unit\": \"ns\", \"against\": \"no "
        "observer\", "
        "\"against_value\": %.3g, \"target\": \"<= 3 ns\"}\n",
        bench::median(above), bench::median(base));
}

void range_with_values() {
    marey::Session session(warm());
    print_above(
        "range_with_values", "range", "<= 40 ns",
        [] {
            for (std::int64_t i = 0; i < kCount; ++i) {
                MAREY_RANGE("benchmark", "rows", i, "share", 0.5, "mode", "fast");
                asm volatile("" ::: "memory");
            }
        },
        [] { ranges(kCount); });
    session.discard();
}

void range_with_shapes() {
    marey::SessionOptions options = warm();
    options.record_shapes = true;
    marey::Session session(options);
    const std::int64_t sizes[] = {8, 64, 56, 56};
    const std::int64_t strides[] = {200704, 3136, 56, 1};
    float data = 0;
    print_above(
        "range_with_shapes", "range", "<= 60 ns",
        [&] {
            for (std::int64_t i = 0; i < kCount; ++i) {
                marey::Operation op;
                if (op.is_active()) {
                    const marey::ArrayView a{
                        .dtype = marey::DType::Float32, .sizes = sizes, .strides = strides, .storage = &data};
                    const marey::ArrayView b = a;
                    const marey::Value inputs[] = {a, b};
                    op.begin(MAREY_SITE("benchmark"), {}, inputs);
                }
                asm volatile("" ::: "memory");
            }
        },
        [] { ranges(kCount); });
    session.discard();
}

void report_allocation() {
    static int block = 0;
    const auto report = [] {
        for (std::int64_t i = 0; i < kCount; ++i) {
            marey::report_allocation(&block, 64, i, i);
            asm volatile("" ::: "memory");
        }
    };
    print_above("report_allocation_off", "empty loop", "<= 1 ns", report, [] { empty_loop(kCount); });
    marey::SessionOptions options = warm();
    options.profile_memory = true;
    marey::Session session(options);
    print_above("report_allocation", "empty loop", "<= 25 ns", report, [] { empty_loop(kCount); });
    session.discard();
}

}  // namespace

int main() {
    observer_empty();
    observer_not_firing();
    range_with_values();
    range_with_shapes();
    report_allocation();
}
