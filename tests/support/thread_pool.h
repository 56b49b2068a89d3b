// thread_pool.h: tasks for the tests of contexts: a pool of threads, and what a session recorded of them.
#pragma once

#include <condition_variable>
#include <deque>
#include <future>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <marey/all.h>

using Names = std::multiset<std::string>;

inline Names names(const marey::Trace& trace) {
    Names found;
    for (marey::Row row = 0; row < trace.ranges().size(); ++row)
        found.insert(std::string(trace.range_name(row)));
    return found;
}

inline std::size_t unfinished(const marey::Trace& trace) {
    std::size_t count = 0;
    for (const std::uint16_t flags : trace.ranges().flags) count += (flags & marey::kUnfinished) != 0;
    return count;
}

inline marey::SessionOptions task_options() {
    return {.threads = marey::Threads::Tasks};
}

/// Runs tasks in order on its own threads, started before anything is posted.
class ThreadPool {
  public:
    explicit ThreadPool(int threads) {
        for (int i = 0; i < threads; ++i) threads_.emplace_back([this] { run(); });
    }
    ~ThreadPool() {
        {
            std::lock_guard lock(mutex_);
            is_ending_ = true;
        }
        changed_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }
    template <class Task>
    auto post(Task task) {
        std::packaged_task<std::invoke_result_t<Task&>()> packaged(std::move(task));
        auto result = packaged.get_future();
        {
            std::lock_guard lock(mutex_);
            tasks_.push_back(std::make_unique<Holder<decltype(packaged)>>(std::move(packaged)));
        }
        changed_.notify_one();
        return result;
    }

  private:
    struct AnyTask {
        virtual ~AnyTask() = default;
        virtual void run() = 0;
    };
    template <class Task>
    struct Holder : AnyTask {
        explicit Holder(Task&& held) : task(std::move(held)) {}
        void run() override { task(); }
        Task task;
    };

    void run() {
        for (;;) {
            std::unique_lock lock(mutex_);
            changed_.wait(lock, [this] { return is_ending_ || !tasks_.empty(); });
            if (tasks_.empty()) return;
            const std::unique_ptr<AnyTask> task = std::move(tasks_.front());
            tasks_.pop_front();
            lock.unlock();
            task->run();
        }
    }

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::unique_ptr<AnyTask>> tasks_;
    bool is_ending_ = false;
    std::vector<std::thread> threads_;
};
