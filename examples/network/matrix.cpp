// matrix.cpp: operations on matrices that report their inputs to Marey.
#include "matrix.h"

#include <algorithm>

namespace {

/// Begins an operation on two matrices. The shapes are collected only while the operation is recorded.
void begin(marey::Operation& op, marey::detail::Site& site, const Matrix& a, const Matrix& b) {
    if (!op.is_active()) return;
    const marey::ArrayView first = a.view(), second = b.view();
    op.begin(site, {.sequence = marey::peek_sequence()}, {marey::Value(first), marey::Value(second)});
}
void begin(marey::Operation& op, marey::detail::Site& site, const Matrix& a) {
    if (!op.is_active()) return;
    const marey::ArrayView first = a.view();
    op.begin(site, {.sequence = marey::peek_sequence()}, {marey::Value(first)});
}

}  // namespace

Matrix mm(const Matrix& a, const Matrix& b) {
    marey::Operation op;
    begin(op, MAREY_SITE("aten::mm"), a, b);
    Matrix result(a.pool(), a.rows(), b.columns());
    std::fill(result.begin(), result.end(), 0.0f);
    for (std::int64_t i = 0; i < a.rows(); ++i) {
        float* const out = result.row(i);
        for (std::int64_t k = 0; k < a.columns(); ++k) {
            const float factor = a.row(i)[k];
            const float* const from = b.row(k);
            for (std::int64_t j = 0; j < b.columns(); ++j) out[j] += factor * from[j];
        }
    }
    return result;
}

Matrix transposed(const Matrix& a) {
    marey::Operation op;
    begin(op, MAREY_SITE("aten::t"), a);
    Matrix result(a.pool(), a.columns(), a.rows());
    for (std::int64_t i = 0; i < a.rows(); ++i) {
        for (std::int64_t j = 0; j < a.columns(); ++j) result.row(j)[i] = a.row(i)[j];
    }
    return result;
}

Matrix relu(const Matrix& a) {
    marey::Operation op;
    begin(op, MAREY_SITE("aten::relu"), a);
    Matrix result(a.pool(), a.rows(), a.columns());
    std::transform(a.begin(), a.end(), result.begin(), [](float x) { return std::max(x, 0.0f); });
    return result;
}

Matrix relu_backward(const Matrix& gradient, const Matrix& a) {
    marey::Operation op;
    begin(op, MAREY_SITE("aten::threshold_backward"), gradient, a);
    Matrix result(a.pool(), a.rows(), a.columns());
    std::transform(gradient.begin(), gradient.end(), a.begin(), result.begin(),
                   [](float g, float x) { return x > 0 ? g : 0.0f; });
    return result;
}

Matrix sub(const Matrix& a, const Matrix& b) {
    marey::Operation op;
    begin(op, MAREY_SITE("aten::sub"), a, b);
    Matrix result(a.pool(), a.rows(), a.columns());
    std::transform(a.begin(), a.end(), b.begin(), result.begin(), [](float x, float y) { return x - y; });
    return result;
}

float mean_square(const Matrix& a) {
    marey::Operation op;
    begin(op, MAREY_SITE("aten::mean"), a);
    float sum = 0;
    for (const float x : a) sum += x * x;
    return sum / static_cast<float>(a.size());
}

void add_in_place(Matrix& a, const Matrix& b, double alpha) {
    marey::Operation op;
    if (op.is_active()) {
        const marey::ArrayView first = a.view(), second = b.view();
        op.begin(MAREY_SITE("aten::add_"), {},
                 {marey::Value(first), marey::Value(second), marey::Value(alpha)});
    }
    std::transform(a.begin(), a.end(), b.begin(), a.begin(),
                   [&](float x, float y) { return x + static_cast<float>(alpha) * y; });
}
