// call_recorder.cpp: the callback, and the functions for which it is enabled.
#include "sources/cuda/call_recorder.h"

#include <pthread.h>
#include <unistd.h>

#include <memory>
#include <new>

#include <marey/device.h>

#include "record/source_writer.h"
#include "sources/cuda/call_names.h"
#include "sources/cuda/cuda_contexts.h"

namespace marey::cuda {
namespace {

constexpr std::size_t kMaxBytes = std::size_t{128} << 20;
constexpr std::uint32_t kMaxCallbacks = 2048;

thread_local int left_out = 0;

}  // namespace

/// The state of a thread. Lives until the thread ends.
struct CallRecorder::PerThread {
    CallRecorder& recorder;
    const std::int32_t os_tid = static_cast<std::int32_t>(gettid());
    bool is_attached = false;  ///< registered with the recorder, which has its name
    CallChunk* chunk = nullptr;
    RecordedCall open{};                 ///< the outermost call that has begun, if its start is not 0
    std::uint32_t round = 0;             ///< the round in which `open` began
    std::uint32_t forgotten_before = 0;  ///< contexts_forgotten() then
    void* noted = nullptr;               ///< the context noted last
    std::uint32_t noted_at = 0;          ///< contexts_forgotten() then
};

// A POSIX key and not a C++ object: thread destructors that run after ours may call CUDA, and a POSIX key is
// then destroyed again.
CallRecorder::PerThread* CallRecorder::this_thread(CallRecorder& recorder) noexcept {
    static thread_local PerThread* mine = nullptr;
    if (mine != nullptr) return mine;
    static pthread_key_t key;
    static const bool has_key = pthread_key_create(&key, [](void* thread) {
                                    const std::unique_ptr<PerThread> ended(static_cast<PerThread*>(thread));
                                    mine = nullptr;
                                    if (ended->chunk != nullptr) ended->recorder.log_.close(ended->chunk);
                                }) == 0;
    if (!has_key) return nullptr;
    std::unique_ptr<PerThread> made(new (std::nothrow) PerThread{.recorder = recorder});
    if (made == nullptr || pthread_setspecific(key, made.get()) != 0) return nullptr;
    return mine = made.release();
}

CallRecorder::CallRecorder(const Cupti& cupti, std::function<void()> on_full,
                           std::function<void()> on_context)
    : cupti_(cupti), on_full_(std::move(on_full)), on_context_(std::move(on_context)), log_(kMaxBytes) {}

SuppressCalls::SuppressCalls() noexcept {
    ++left_out;
}

SuppressCalls::~SuppressCalls() {
    --left_out;
}

std::string CallRecorder::subscribe() {
    char holder[128] = "";
    SubscriberParams params{sizeof(SubscriberParams), "Marey", holder, sizeof holder};
    const CuptiResult result = cupti_.subscribe != nullptr
                                   ? cupti_.subscribe(&subscriber_, &called, this, &params)
                                   : cupti_.subscribe_unnamed(&subscriber_, &called, this);
    if (result == kCuptiSuccess) return "";
    subscriber_ = nullptr;
    if (result != kCuptiMultipleSubscribers) return "cannot use CUPTI: " + cupti_error(result) + ".";
    return "Another profiler is using the GPU" +
           (holder[0] != '\0' ? " (" + std::string(holder) + ")" : std::string()) +
           ": CUPTI supports one at a time. GPU work is not recorded until that profiler ends "
           "(torch.profiler keeps CUPTI until the process ends).";
}

void CallRecorder::unsubscribe() noexcept {
    if (void* const subscriber = std::exchange(subscriber_, nullptr)) cupti_.unsubscribe(subscriber);
}

bool CallRecorder::is_cupti_free() {
    const bool is_free = subscribe().empty();
    unsubscribe();
    return is_free;
}

std::string CallRecorder::start() {
    if (std::string trouble = subscribe(); !trouble.empty()) return trouble;
    forget_contexts();  // a late callback may have noted one
    round_.fetch_add(1);
    is_on_.store(true);
    cupti_.enable_callback(1, subscriber_, kResourceEvents, kContextEnds);
    return "";
}

void CallRecorder::stop() noexcept {
    is_on_.store(false);
    unsubscribe();
    for (bool& is_traced : is_traced_) is_traced = false;
    forget_contexts();
}

CuptiResult CallRecorder::trace_calls(std::uint32_t domain) {
    if (std::exchange(is_traced_[domain], true)) return kCuptiSuccess;
    if (functions_[domain].empty()) functions_[domain] = traced_functions(domain);
    CuptiResult trouble = kCuptiSuccess;
    std::size_t refused = 0;  // some functions may not exist in this driver
    for (const std::uint32_t callback : functions_[domain]) {
        const CuptiResult result = cupti_.enable_callback(1, subscriber_, domain, callback);
        if (result == kCuptiSuccess) continue;
        ++refused;
        trouble = result;
    }
    return refused == functions_[domain].size() ? trouble : kCuptiSuccess;
}

std::vector<std::uint32_t> CallRecorder::traced_functions(std::uint32_t domain) const {
    std::vector<std::uint32_t> traced;
    for (std::uint32_t callback = 1; callback < kMaxCallbacks; ++callback) {
        const char* name = nullptr;
        if (cupti_.callback_name(domain, callback, &name) != kCuptiSuccess || name == nullptr) break;
        const std::string plain = plain_call_name(name);
        if (domain == kDriverCalls ? is_traced_driver_call(plain) : is_traced_runtime_call(plain))
            traced.push_back(callback);
    }
    return traced;
}

// ---- called by CUPTI, on threads of the program ----

void CallRecorder::called(void* self, std::uint32_t domain, std::uint32_t callback, const void* data) {
    auto& recorder = *static_cast<CallRecorder*>(self);
    if (!recorder.is_on_.load(std::memory_order_relaxed)) return;
    if (domain == kResourceEvents) {
        context_ends(static_cast<const ResourceData*>(data)->context);
    } else if (left_out == 0) {
        recorder.record_call(domain, callback, *static_cast<const CallbackData*>(data));
    }
}

void CallRecorder::record_call(std::uint32_t domain, std::uint32_t callback,
                               const CallbackData& data) noexcept {
    PerThread* const thread = this_thread(*this);
    if (thread == nullptr) {
        if (data.site == kCallEnds) log_.count_lost();
        return;
    }
    RecordedCall& open = thread->open;
    const std::uint32_t round = round_.load(std::memory_order_relaxed);
    if (data.site == kCallBegins) {
        // The end of a call from an earlier round was not recorded.
        if (open.start != 0 && thread->round == round) return;
        if (!thread->is_attached) thread->is_attached = attach_thread();
        open = {.domain = domain, .callback = callback, .start = device_ticks()};
        thread->round = round;
        thread->forgotten_before = contexts_forgotten();
        return;
    }
    if (open.start == 0 || thread->round != round || open.domain != domain || open.callback != callback)
        return;
    open.end = device_ticks();
    open.correlation = data.correlation;
    open.result = data.result != nullptr ? *static_cast<const std::int32_t*>(data.result) : 0;
    if (open.result == 0) note(*thread, data.context);
    if (log_.write(thread->chunk, thread->os_tid, open)) on_full_();
    open.start = 0;
}

// The call succeeded, so the context was valid, unless the call itself ended it, as cudaDeviceReset does.
void CallRecorder::note(PerThread& thread, void* context) noexcept {
    const std::uint32_t forgotten = contexts_forgotten();
    if (forgotten != thread.forgotten_before) return;
    if (context == thread.noted && forgotten == thread.noted_at) return;
    thread.noted = context;
    thread.noted_at = forgotten;
    if (note_context(context)) on_context_();
}

}  // namespace marey::cuda
