// emitters_program.cpp: emits ranges in one of several ways; emitters.cpp examines what the collectors
// received. Usage: emitters_program nvtx|itt MODE.
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include <marey/all.h>
#include <marey/emit.h>

namespace {

using marey::ArrayView;
using marey::Operation;
using marey::Scope;
using marey::Value;

/// Either emitter.
class Emitter {
  public:
    Emitter(bool to_nvtx, const marey::EmitOptions& options) {
        if (to_nvtx) {
            nvtx_.emplace(options);
        } else {
            itt_.emplace(options);
        }
    }

  private:
    std::optional<marey::NvtxEmitter> nvtx_;
    std::optional<marey::IttEmitter> itt_;
};

template <class Function>
void on_a_thread(Function function) {
    std::thread(function).join();
}

void forward_and_backward(bool to_nvtx) {
    const Emitter emitter(to_nvtx, {});
    const std::int64_t sequence = marey::peek_sequence();
    const std::uint32_t forward_thread = marey::current_thread_id();
    {
        Operation op(Scope::Function);
        op.begin("mul", {.sequence = sequence});
        marey::take_sequence();
    }
    on_a_thread([=] {
        Operation op(Scope::BackwardFunction);
        op.begin("MulBackward", {.sequence = sequence, .forward_thread = forward_thread});
        MAREY_RANGE("inner");
    });
}

// Two arrays, one made from the other; the memory of the second is freed and used again.
void producers(bool to_nvtx) {
    const Emitter emitter(to_nvtx, {.record_shapes = true});
    const std::int64_t sizes[] = {2, 3};
    float a[6] = {}, b[6] = {};
    const ArrayView first{.sizes = sizes, .storage = a};
    const ArrayView second{.sizes = sizes, .storage = b};
    {
        Operation op;
        op.begin("make", {}, {});
        const Value outputs[] = {5, first};
        op.set_outputs(outputs);
    }
    {
        Operation op;
        op.begin("twice", {}, {Value(first), Value(7)});
        const Value both[] = {Value(second)};
        const Value outputs[] = {Value(std::span<const Value>(both))};
        op.set_outputs(outputs);
    }
    const Value list[] = {Value(second), Value(first)};
    {
        Operation op;
        op.begin("join", {}, {Value(std::span<const Value>(list)), Value("text")});
    }
    marey::report_allocation(b, -24, 0, 0);
    {
        Operation op;
        op.begin("other", {}, {Value(second)});
    }
}

// A range that ends elsewhere, and one that is open at the stop.
void elsewhere(bool to_nvtx) {
    marey::Range last;
    {
        const Emitter emitter(to_nvtx, {});
        marey::Range moved("moved");
        MAREY_RANGE("scope");
        on_a_thread([&] { moved.end(); });
        last = marey::Range("last");
    }
    last.end();
}

// Manual NVTX ranges among those of an emitter.
void by_hand(bool to_nvtx) {
    const Emitter emitter(to_nvtx, {});
    MAREY_RANGE("ours");
    std::printf("%d ", marey::nvtx::range_push("by hand"));
    {
        MAREY_RANGE("inner");
        marey::nvtx::mark("mark");
    }
    const std::uint64_t started = marey::nvtx::range_start("started");
    std::printf("%d\n", marey::nvtx::range_pop());
    marey::nvtx::range_end(started);
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    const bool to_nvtx = std::strcmp(argv[1], "nvtx") == 0;
    const std::string mode = argv[2];
    if (mode == "forward_and_backward") {
        forward_and_backward(to_nvtx);
    } else if (mode == "producers") {
        producers(to_nvtx);
    } else if (mode == "elsewhere") {
        elsewhere(to_nvtx);
    } else if (mode == "by_hand") {
        by_hand(to_nvtx);
    } else {
        return 2;
    }
    return 0;
}
