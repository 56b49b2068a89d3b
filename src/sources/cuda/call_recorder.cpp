// call_recorder.cpp: the callback, and the functions that have it.
#include "sources/cuda/call_recorder.h"

#include <pthread.h>
#include <unistd.h>

#include <new>
#include <utility>

#include <kymo/device.h>

#include "sources/cuda/call_names.h"
#include "sources/cuda/cuda_contexts.h"

namespace kymo::cuda {
namespace {

constexpr std::size_t kMostBytes = std::size_t{128} << 20;
constexpr std::uint32_t kMostCallbacks = 2048;

thread_local bool is_left_out = false;

}  // namespace

/// What is known of a thread. Lives until the thread ends.
struct CallRecorder::OfThread {
    CallRecorder& recorder;
    const std::int32_t os_tid = static_cast<std::int32_t>(gettid());
    CallChunk* chunk = nullptr;
    std::uint32_t round = 0;
    std::uint32_t depth = 0;  ///< calls that have begun and not ended, in that round
    std::uint64_t start = 0;  ///< of the outermost
    void* context = nullptr;  ///< that was noted last
    std::uint32_t contexts_forgotten = 0;
};

// A key of POSIX and not a C++ object: CUDA may be called by destructors of the thread that come after ours,
// and a key is destroyed once more then.
CallRecorder::OfThread* CallRecorder::this_thread(CallRecorder& recorder) noexcept {
    static thread_local OfThread* mine = nullptr;
    if (mine != nullptr) return mine;
    if (is_left_out) return nullptr;
    static const pthread_key_t key = [] {
        pthread_key_t made = 0;
        pthread_key_create(&made, [](void* thread) {
            const std::unique_ptr<OfThread> ended(static_cast<OfThread*>(thread));
            mine = nullptr;
            if (ended->chunk != nullptr) ended->recorder.log_.close(ended->chunk);
        });
        return made;
    }();
    std::unique_ptr<OfThread> made(new (std::nothrow) OfThread{.recorder = recorder});
    if (made == nullptr || pthread_setspecific(key, made.get()) != 0) return nullptr;
    return mine = made.release();
}

CallRecorder::CallRecorder(const Cupti& cupti, std::function<void()> on_full)
    : cupti_(cupti), on_full_(std::move(on_full)), log_(kMostBytes) {}

void CallRecorder::leave_this_thread_out() noexcept {
    is_left_out = true;
}

std::string CallRecorder::start() {
    char holder[128] = "";
    SubscriberParams params{sizeof(SubscriberParams), "Kymo", holder, sizeof holder};
    const CuptiResult result = cupti_.subscribe != nullptr
                                   ? cupti_.subscribe(&subscriber_, &called, this, &params)
                                   : cupti_.subscribe_unnamed(&subscriber_, &called, this);
    if (result == kCuptiSuccess) {
        round_.fetch_add(1);
        is_on_.store(true);
        cupti_.enable_callback(1, subscriber_, kResourceEvents, kContextEnds);
        return "";
    }
    subscriber_ = nullptr;
    if (result != kCuptiMultipleSubscribers) return "CUPTI cannot be used: " + cupti_error(result) + ".";
    return "Another profiler holds the GPU" +
           (holder[0] != '\0' ? " (" + std::string(holder) + ")" : std::string()) +
           ": CUPTI serves one at a time. Nothing of the GPU is recorded until that one ends (torch.profiler "
           "keeps it until the end of the process).";
}

void CallRecorder::stop() noexcept {
    is_on_.store(false);
    if (void* const subscriber = std::exchange(subscriber_, nullptr)) cupti_.unsubscribe(subscriber);
    for (bool& is_chosen : is_chosen_) is_chosen = false;
    forget_contexts();
}

void CallRecorder::choose(bool runtime, bool driver) {
    switch_domain(kRuntimeCalls, runtime);
    switch_domain(kDriverCalls, driver);
}

void CallRecorder::switch_domain(std::uint32_t domain, bool on) {
    if (std::exchange(is_chosen_[domain], on) == on) return;
    if (told_[domain].empty()) told_[domain] = told_calls(domain);
    for (const std::uint32_t callback : told_[domain])
        cupti_.enable_callback(on ? 1 : 0, subscriber_, domain, callback);
}

std::vector<std::uint32_t> CallRecorder::told_calls(std::uint32_t domain) const {
    std::vector<std::uint32_t> told;
    for (std::uint32_t callback = 1; callback < kMostCallbacks; ++callback) {
        const char* name = nullptr;
        if (cupti_.callback_name(domain, callback, &name) != kCuptiSuccess || name == nullptr) break;
        const std::string plain = plain_call_name(name);
        if (domain == kDriverCalls ? is_told_driver_call(plain) : is_told_runtime_call(plain))
            told.push_back(callback);
    }
    return told;
}

// ---- called by CUPTI, on threads of the program ----

void CallRecorder::called(void* self, std::uint32_t domain, std::uint32_t callback, const void* data) {
    auto& recorder = *static_cast<CallRecorder*>(self);
    if (!recorder.is_on_.load(std::memory_order_relaxed)) return;
    if (domain == kResourceEvents) {
        if (!is_left_out) context_ends(static_cast<const ResourceData*>(data)->context);
    } else {
        recorder.take_down(domain, callback, *static_cast<const CallbackData*>(data));
    }
}

void CallRecorder::take_down(std::uint32_t domain, std::uint32_t callback,
                             const CallbackData& data) noexcept {
    OfThread* const thread = this_thread(*this);
    if (thread == nullptr) {
        if (!is_left_out && data.site == kCallEnds) log_.count_lost();
        return;
    }
    const std::uint32_t round = round_.load(std::memory_order_relaxed);
    if (thread->round != round) {  // ends of calls may have gone unheard since
        thread->round = round;
        thread->depth = 0;
    }
    if (data.site == kCallBegins) {
        if (thread->depth++ == 0) thread->start = device_ticks();
        return;
    }
    if (thread->depth == 0 || --thread->depth != 0) return;
    const std::uint32_t forgotten = contexts_forgotten();
    if (data.context != thread->context || forgotten != thread->contexts_forgotten) {
        thread->context = data.context;
        thread->contexts_forgotten = forgotten;
        note_context(data.context);
    }
    RecordedCall call;
    call.domain = domain;
    call.callback = callback;
    call.correlation = data.correlation;
    call.result = data.result != nullptr ? *static_cast<const std::int32_t*>(data.result) : 0;
    call.start = thread->start;
    call.end = device_ticks();
    bool is_full = false;
    log_.write(thread->chunk, thread->os_tid, call, is_full);
    if (is_full) on_full_();
}

}  // namespace kymo::cuda
