// matrix.h: matrices, and operations on them that report their inputs to Marey.
#pragma once

#include <array>
#include <cstdint>
#include <new>
#include <utility>

#include <marey/marey.h>

#include "pool.h"

/// Rows x columns of floats. Owns its memory, which it takes from the pool.
class Matrix {
  public:
    /// Throws std::bad_alloc.
    Matrix(Pool& pool, std::int64_t rows, std::int64_t columns)
        : pool_(&pool), sizes_{rows, columns}, values_(pool.take(static_cast<std::size_t>(rows * columns))) {
        if (values_ == nullptr) throw std::bad_alloc();
    }
    ~Matrix() {
        if (values_ != nullptr) pool_->give_back(values_);
    }
    Matrix(Matrix&& other) noexcept
        : pool_(other.pool_), sizes_(other.sizes_), values_(std::exchange(other.values_, nullptr)) {}
    Matrix& operator=(Matrix&& other) noexcept {
        std::swap(pool_, other.pool_);
        std::swap(sizes_, other.sizes_);
        std::swap(values_, other.values_);
        return *this;
    }

    Pool& pool() const { return *pool_; }
    std::int64_t rows() const { return sizes_[0]; }
    std::int64_t columns() const { return sizes_[1]; }
    std::int64_t size() const { return sizes_[0] * sizes_[1]; }
    float* begin() { return values_; }
    float* end() { return values_ + size(); }
    const float* begin() const { return values_; }
    const float* end() const { return values_ + size(); }
    const float* row(std::int64_t i) const { return values_ + i * sizes_[1]; }
    float* row(std::int64_t i) { return values_ + i * sizes_[1]; }

    /// The metadata that Marey records.
    marey::ArrayView view() const {
        return {.dtype = marey::DType::Float32, .sizes = sizes_, .storage = values_};
    }

  private:
    Pool* pool_;
    std::array<std::int64_t, 2> sizes_;
    float* values_;
};

// The names are PyTorch's, so that Marey can count their floating-point operations.
Matrix mm(const Matrix& a, const Matrix& b);
Matrix transposed(const Matrix& a);
Matrix relu(const Matrix& a);
/// `gradient` where `a` is positive, otherwise 0.
Matrix relu_backward(const Matrix& gradient, const Matrix& a);
Matrix sub(const Matrix& a, const Matrix& b);
float mean_square(const Matrix& a);
/// a += alpha b.
void add_in_place(Matrix& a, const Matrix& b, double alpha);
