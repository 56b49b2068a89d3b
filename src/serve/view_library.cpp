// view_library.cpp: the function that libmarey.so finds in this library.
#include <sys/random.h>

#include <array>
#include <cstddef>
#include <exception>
#include <filesystem>
#include <memory>
#include <utility>

#include <marey/error.h>
#include <marey/view.h>

#include "serve/api.h"
#include "serve/server.h"

namespace marey::serve {
namespace {

/// 128 random bits as hexadecimal digits.
std::string make_secret() {
    std::array<unsigned char, 16> bits{};
    if (::getrandom(bits.data(), bits.size(), 0) != static_cast<ssize_t>(bits.size()))
        throw Error("cannot start the viewer: the system has no random numbers");
    std::string text;
    for (const unsigned char byte : bits) {
        constexpr char kHex[] = "0123456789abcdef";
        text += kHex[byte >> 4];
        text += kHex[byte & 15];
    }
    return text;
}

class RunningView final : public Viewer {
  public:
    RunningView(std::vector<ViewSource> sources, const ViewOptions& options) : secret_(make_secret()) {
        if (!options.is_offline)
            server_ = std::make_unique<Server>(options.port);  // before a trace is loaded
        std::vector<std::string> folders = options.source_dirs;
        folders.push_back(std::filesystem::current_path());
        api_ = std::make_unique<Api>(std::move(sources), std::move(folders), secret_, options.comparison);
        if (server_ != nullptr)
            server_->start([this](const HttpRequest& request) { return api_->handle(request); });
    }
    ~RunningView() override { server_.reset(); }  // before what it uses

    std::string url() const override {
        return "http://127.0.0.1:" + std::to_string(port()) + "/#token=" + secret_;
    }
    std::uint16_t port() const noexcept override { return server_ != nullptr ? server_->port() : 0; }
    std::string answer(const std::string& target) const override {
        try {
            return api_->handle_own(target).body;
        } catch (const RequestError& error) {
            throw Error(target + ": " + error.what());
        }
    }

  private:
    std::string secret_;
    std::unique_ptr<Api> api_;
    std::unique_ptr<Server> server_;
};

}  // namespace
}  // namespace marey::serve

/// Starts a server. Returns null and sets `error` if that fails: exceptions do not leave this library.
extern "C" __attribute__((visibility("default"))) marey::Viewer* marey_open_view(
    std::vector<marey::ViewSource>* sources, const marey::ViewOptions* options, std::string* error) {
    try {
        if (sources->empty()) throw marey::Error("no trace to show");
        return new marey::serve::RunningView(std::move(*sources), *options);
    } catch (const std::exception& caught) {
        *error = caught.what();
        return nullptr;
    }
}
