// bounded_queue.h: passes items between threads and blocks the producer while the queue is full.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>
#include <utility>

#include <marey/marey.h>

/// Safe for any number of producers and consumers. `name` is a literal: it names the counter of the queue's
/// length.
template <class Item>
class BoundedQueue {
  public:
    BoundedQueue(const char* name, std::size_t capacity) : name_(name), capacity_(capacity) {}

    /// Waits while the queue is full.
    void push(Item item) {
        std::unique_lock lock(mutex_);
        if (items_.size() >= capacity_) {
            MAREY_RANGE("wait for room");
            room_.wait(lock, [this] { return items_.size() < capacity_; });
        }
        items_.push_back(std::move(item));
        marey::counter(name_, items_.size());
        lock.unlock();
        filled_.notify_one();
    }

    /// Waits for an item. Returns nothing once the queue is closed and empty.
    std::optional<Item> pop() {
        std::unique_lock lock(mutex_);
        if (items_.empty() && !closed_) {
            MAREY_RANGE("wait for work");
            filled_.wait(lock, [this] { return !items_.empty() || closed_; });
        }
        if (items_.empty()) return std::nullopt;
        Item item = std::move(items_.front());
        items_.pop_front();
        marey::counter(name_, items_.size());
        lock.unlock();
        room_.notify_one();
        return item;
    }

    /// Call after the last push. Consumers still receive the remaining items.
    void close() {
        const std::lock_guard lock(mutex_);
        closed_ = true;
        filled_.notify_all();
    }

  private:
    const char* name_;
    const std::size_t capacity_;
    std::mutex mutex_;  // protects the members below
    std::condition_variable room_, filled_;
    std::deque<Item> items_;
    bool closed_ = false;
};
