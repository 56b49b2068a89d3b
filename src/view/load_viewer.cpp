// load_viewer.cpp: loads the viewer's library, so that programs that only record do not carry it.
#include <marey/view.h>

#include <dlfcn.h>

#include <marey/error.h>

namespace marey {
namespace {

using OpenView = Viewer* (*)(std::vector<ViewSource>* sources, const ViewOptions* options,
                             std::string* error);

/// The function that libmarey_view.so exports.
OpenView load_open_view() {
    Dl_info info{};
    std::string file;
    if (dladdr(reinterpret_cast<const void*>(&open_view), &info) != 0 && info.dli_fname != nullptr)
        file = info.dli_fname;
    file.resize(file.rfind('/') + 1);  // npos + 1: none of it
    file += "libmarey_view.so";
    void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* const found = library != nullptr ? dlsym(library, "marey_open_view") : nullptr;
    if (found == nullptr) {
        const char* const why = dlerror();
        throw Error("cannot load the viewer: " + std::string(why != nullptr ? why : file.c_str()));
    }
    return reinterpret_cast<OpenView>(found);
}

}  // namespace

std::unique_ptr<Viewer> open_view(std::vector<ViewSource> sources, const ViewOptions& options) {
    static const OpenView open = load_open_view();
    std::string error;
    std::unique_ptr<Viewer> view(open(&sources, &options, &error));
    if (view == nullptr) throw Error(error);
    return view;
}

}  // namespace marey
