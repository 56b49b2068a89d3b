// start_verb.cpp: marey start: lets running programs record.
#include <chrono>
#include <filesystem>
#include <thread>

#include <marey/session_options.h>

#include "cli/capture_argument.h"
#include "cli/controlled.h"
#include "cli/terminal.h"
#include "cli/verb.h"

namespace marey::cli {
namespace {

class StartVerb final : public Verb {
  public:
    const char* help() const override { return "Start to record a program that takes requests"; }
    const char* details() const override {
        return "A program takes requests if it was started with MAREY=control=on, or has called\n"
               "marey.allow_control(). Of several programs, all begin at the same time.";
    }
    void declare(Options& options) override {
        processes_.declare(options);
        options.text(output_, "-o,--output", "FILE", "Capture file (PID.marey; several: FILE.PID.marey)");
        options.flag(calls_, "--calls", "Record Python calls");
        options.text(for_, "--for", "TIME", "Stop after this time, such as 10s (at marey stop)");
        options.text(at_, "--at", "+TIME", "Begin this much later, such as +2s");
        options.text(options_, "--options", "LIST", "Further options, as in the variable MAREY");
    }
    int run() override {
        parse_options(options_);
        StartRequest request;
        if (!for_.empty()) request.duration_ns = parsed_time("--for", for_);
        std::int64_t later_ns = 0;
        if (!at_.empty()) {
            if (at_[0] != '+') throw Error("start: --at " + at_ + ": expected a time from now, such as +2s");
            later_ns = parsed_time("--at", at_.substr(1));
        }
        const std::vector<std::int64_t> pids = processes_.pids("start");
        constexpr std::int64_t kSoonNs = 50'000'000;  // for all of them to hear of it
        if (later_ns == 0 && pids.size() > 1) later_ns = kSoonNs;
        if (later_ns != 0)
            request.at_ns =
                std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1) + later_ns;
        return ask_all(pids, request);
    }

  private:
    std::string path_for(std::int64_t pid, bool is_one) const {
        std::string path = output_;
        if (path.empty()) path = fmt::format("{}.marey", pid);
        if (!output_.empty() && !is_one) path = fmt::format("{}.{}.marey", without_suffix(path), pid);
        return std::filesystem::absolute(path).lexically_normal().string();
    }

    int ask_all(const std::vector<std::int64_t>& pids, const StartRequest& common) const {
        std::vector<std::string> answers(pids.size()), errors(pids.size());
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < pids.size(); ++i) {
            threads.emplace_back([&, i] {
                try {
                    StartRequest request = common;
                    request.options = option_entry("out", path_for(pids[i], pids.size() == 1));
                    if (calls_) request.options += ",calls=on,c_calls=off";
                    if (!options_.empty()) request.options += "," + options_;
                    answers[i] = start_recording(pids[i], request);
                } catch (const std::exception& error) {
                    errors[i] = error.what();
                }
            });
        }
        for (std::thread& thread : threads) thread.join();
        int code = kSuccess;
        for (std::size_t i = 0; i < pids.size(); ++i) {
            if (errors[i].empty()) {
                write_out(fmt::format("{}: recording into {}\n", pids[i], printable(answers[i])));
            } else {
                print_error(fmt::format("marey: start: {}\n", printable(errors[i])));
                code = kFailure;
            }
        }
        return code;
    }

    ControlledArgument processes_;
    std::string output_, for_, at_, options_;
    bool calls_ = false;
};

}  // namespace

MAREY_VERB(start, StartVerb)

}  // namespace marey::cli
