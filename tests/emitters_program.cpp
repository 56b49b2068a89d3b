// emitters_program.cpp: emits ranges in one of several ways; emitters.cpp looks at what the collectors got.
// Usage: emitters_program nvtx|itt MODE.
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <thread>

#include <kymo/emit.h>
#include <kymo/kymo.h>

namespace {

using kymo::ArrayView;
using kymo::Operation;
using kymo::Scope;
using kymo::Value;

/// Either emitter.
class Emitter {
  public:
    Emitter(bool to_nvtx, const kymo::EmitOptions& options) {
        if (to_nvtx) {
            nvtx_.emplace(options);
        } else {
            itt_.emplace(options);
        }
    }

  private:
    std::optional<kymo::NvtxEmitter> nvtx_;
    std::optional<kymo::IttEmitter> itt_;
};

template <class Function>
void on_a_thread(Function function) {
    std::thread(function).join();
}

void forward_and_backward(bool to_nvtx) {
    const Emitter emitter(to_nvtx, {});
    const std::int64_t sequence = kymo::peek_sequence();
    const std::uint32_t forward_thread = kymo::current_thread_id();
    {
        Operation op(Scope::Function);
        op.begin("mul", {.sequence = sequence});
        kymo::take_sequence();
    }
    on_a_thread([=] {
        Operation op(Scope::BackwardFunction);
        op.begin("MulBackward", {.sequence = sequence, .forward_thread = forward_thread});
        KYMO_RANGE("inner");
    });
}

// Two arrays, made one of the other; the memory of the second is given back and used again.
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
    kymo::report_allocation(b, -24, 0, 0);
    {
        Operation op;
        op.begin("other", {}, {Value(second)});
    }
}

// A range that ends elsewhere, and one that is open at the stop.
void elsewhere(bool to_nvtx) {
    kymo::Range last;
    {
        const Emitter emitter(to_nvtx, {});
        kymo::Range moved("moved");
        KYMO_RANGE("scope");
        on_a_thread([&] { moved.end(); });
        last = kymo::Range("last");
    }
    last.end();
}

// Ranges of NVTX by hand, among those of an emitter.
void by_hand(bool to_nvtx) {
    const Emitter emitter(to_nvtx, {});
    KYMO_RANGE("ours");
    std::printf("%d ", kymo::nvtx::range_push("by hand"));
    {
        KYMO_RANGE("inner");
        kymo::nvtx::mark("mark");
    }
    const std::uint64_t started = kymo::nvtx::range_start("started");
    std::printf("%d\n", kymo::nvtx::range_pop());
    kymo::nvtx::range_end(started);
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
