// context.cpp: cost of contexts: setting a slot with a guard, and adopting another thread's context, also on
// two threads at once.
#include <barrier>
#include <memory>
#include <string>
#include <thread>

#include <marey/all.h>

#include "figure.h"

namespace {

inline constexpr marey::ContextSlot<int> kRequest{"request"};

constexpr std::int64_t kCount = 1'000'000;

// The obvious implementation of one slot without snapshots: swap a thread-local shared pointer.
thread_local std::shared_ptr<const int> plain_slot;

__attribute__((noinline)) void swap_plain(std::int64_t count, const std::shared_ptr<const int>& value) {
    for (std::int64_t i = 0; i < count; ++i) {
        std::shared_ptr<const int> before = std::exchange(plain_slot, value);
        asm volatile("" ::: "memory");
        plain_slot = std::move(before);
    }
}

__attribute__((noinline)) void guards(std::int64_t count, const std::shared_ptr<const int>& value) {
    for (std::int64_t i = 0; i < count; ++i) {
        const marey::ContextGuard<int> guard(kRequest, value);
        asm volatile("" ::: "memory");
    }
}

__attribute__((noinline)) void own_guards(std::int64_t count) {
    for (std::int64_t i = 0; i < count; ++i) {
        const marey::ContextGuard<int> guard(kRequest, static_cast<int>(i));
        asm volatile("" ::: "memory");
    }
}

__attribute__((noinline)) void adoptions(std::int64_t count, const marey::Context& context) {
    for (std::int64_t i = 0; i < count; ++i) {
        const marey::ContextAdoption adoption(context);
        asm volatile("" ::: "memory");
    }
}

// With a value that the guard owns, and with a shared value, whose reference count is most of the cost.
void guard() {
    const auto value = std::make_shared<const int>(1);
    std::thread([] {}).join();  // makes reference counts atomic, as in any program with threads
    std::vector<double> values;
    std::vector<double> own_values;
    std::vector<double> plain;
    for (int repetition = 0; repetition < 16; ++repetition) {
        const double base = bench::thread_ns(kCount, [&] { swap_plain(kCount, value); });
        const double shared = bench::thread_ns(kCount, [&] { guards(kCount, value); });
        const double own = bench::thread_ns(kCount, [] { own_guards(kCount); });
        if (repetition == 0) continue;
        plain.push_back(base);
        values.push_back(shared);
        own_values.push_back(own);
    }
    bench::print("context_guard", "ns", own_values, "swapping a thread-local shared_ptr", plain, "<= 20 ns");
    bench::print("context_guard_shared", "ns", values, "swapping a thread-local shared_ptr", plain, "");
}

// With a session that follows tasks, recording is switched on and off on the adopting thread, and each switch
// is recorded. The baseline is a context with slots only.
void adopt() {
    const marey::ContextGuard guard(kRequest, 1);
    const marey::Context slots = marey::Context::current();
    marey::Session session(marey::SessionOptions{
        .max_bytes = 16 << 20, .policy = marey::Policy::Ring, .threads = marey::Threads::Tasks});
    const marey::Context context = marey::Context::current();
    std::vector<double> values;
    std::vector<double> alone;
    std::thread([&] {
        for (int repetition = 0; repetition < 16; ++repetition) {
            const double base = bench::thread_ns(kCount, [&] { adoptions(kCount, slots); });
            const double own = bench::thread_ns(kCount, [&] { adoptions(kCount, context); });
            if (repetition == 0) continue;
            alone.push_back(base);
            values.push_back(own);
        }
    }).join();
    session.discard();
    bench::print("context_adopt", "ns", values, "slots alone", alone, "<= 100 ns");
}

// Returns millions of adoptions of the same context per second. Threads are started before the measurement.
double throughput(int threads, const marey::Context& context) {
    constexpr std::int64_t kEach = 2'000'000;
    std::barrier<> start(threads + 1), done(threads + 1);
    std::vector<std::thread> running;
    for (int i = 0; i < threads; ++i) {
        running.emplace_back([&] {
            adoptions(1000, context);
            start.arrive_and_wait();
            adoptions(kEach, context);
            done.arrive_and_wait();
        });
    }
    start.arrive_and_wait();
    const double begin = bench::seconds(CLOCK_MONOTONIC);
    done.arrive_and_wait();
    const double end = bench::seconds(CLOCK_MONOTONIC);
    for (std::thread& thread : running) thread.join();
    return static_cast<double>(threads) * kEach / (end - begin) * 1e-6;
}

void contended() {
    const marey::ContextGuard guard(kRequest, 1);
    marey::Session session(marey::SessionOptions{
        .max_bytes = 16 << 20, .policy = marey::Policy::Ring, .threads = marey::Threads::Tasks});
    const marey::Context context = marey::Context::current();
    throughput(2, context);
    std::vector<double> one, two;
    for (int repetition = 0; repetition < 11; ++repetition) {
        one.push_back(throughput(1, context));
        two.push_back(throughput(2, context));
    }
    session.discard();
    bench::print("context_adopt_contended", "M/s", two, "one thread", one, ">= 1.9");
}

}  // namespace

int main() {
    guard();
    adopt();
    contended();
}
