// main.cpp: trains a small network in plain C++, to show operations with shapes, forward and backward
// halves, and memory.
//
//   marey run --memory --flops -o network.marey -- build/release/examples/network
//   marey memory network.marey
#include <cstdio>
#include <cstdlib>
#include <new>

#include <marey/marey.h>

#include "matrix.h"

namespace {

constexpr std::size_t kPoolBytes = std::size_t{8} << 20;
constexpr std::int64_t kInputs = 64, kHidden = 128, kOutputs = 16;
constexpr std::int64_t kBatch = 256;

/// Fills it with numbers between -scale and scale, the same on every run.
void fill(Matrix& matrix, float scale) {
    static std::uint32_t state = 1;
    for (float& x : matrix) {
        state = state * 1664525u + 1013904223u;
        x = (static_cast<float>(state >> 8) / 8388608.0f - 1.0f) * scale;
    }
}

struct Network {
    explicit Network(Pool& pool) : first(pool, kInputs, kHidden), second(pool, kHidden, kOutputs) {
        fill(first, 0.2f);
        fill(second, 0.2f);
    }
    Matrix first, second;
};

/// The results of the forward half that the backward half needs.
struct Forward {
    Matrix hidden, active, out;
    std::int64_t sequence;
};

Forward forward(const Network& network, const Matrix& in) {
    MAREY_RANGE("forward");
    Matrix hidden = mm(in, network.first);
    Matrix active = relu(hidden);
    Matrix out = mm(active, network.second);
    return {std::move(hidden), std::move(active), std::move(out), marey::take_sequence()};
}

void backward(Network& network, const Matrix& in, const Forward& half, const Matrix& error, double rate) {
    marey::Operation op(marey::Scope::BackwardFunction);
    op.begin(MAREY_SITE_SCOPE(marey::Scope::BackwardFunction, "MmBackward0"),
             {.sequence = half.sequence, .forward_thread = marey::current_thread_id()});
    const Matrix second = mm(transposed(half.active), error);
    const Matrix hidden = relu_backward(mm(error, transposed(network.second)), half.hidden);
    const Matrix first = mm(transposed(in), hidden);
    add_in_place(network.second, second, -rate);
    add_in_place(network.first, first, -rate);
}

float step(Network& network, const Matrix& in, const Matrix& wanted) {
    MAREY_RANGE_SCOPE(marey::Scope::Step, "step", "batch", in.rows());
    const Forward half = forward(network, in);
    const Matrix error = sub(half.out, wanted);
    const float loss = mean_square(error);
    backward(network, in, half, error, 0.5 / static_cast<double>(in.rows()));
    return loss;
}

/// Loads a batch of `rows` rows or, if there is no memory for it, of `fewer`.
Matrix load_batch(Pool& pool, std::int64_t rows, std::int64_t fewer) {
    MAREY_RANGE("load batch");
    auto load = [&](std::int64_t count) {
        Matrix batch(pool, count, kInputs);
        fill(batch, 1);
        return batch;
    };
    try {
        return load(rows);
    } catch (const std::bad_alloc&) {
        std::printf("no memory for a batch of %lld\n", static_cast<long long>(rows));
        return load(fewer);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const int steps = argc > 1 ? std::atoi(argv[1]) : 20;
    Pool pool(kPoolBytes);
    Network network(pool);
    const Network teacher(pool);
    const Matrix in = load_batch(pool, kBatch * 256, kBatch);  // the first size does not fit
    const Matrix wanted = forward(teacher, in).out;
    float loss = 0;
    for (int i = 0; i < steps; ++i) {
        loss = step(network, in, wanted);
        marey::counter("loss", loss);
    }
    std::printf("%d steps, loss %.4f\n", steps, static_cast<double>(loss));
    return 0;
}
