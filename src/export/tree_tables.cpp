// tree_tables.cpp: call trees and hot paths as JSON.
#include <marey/export.h>

#include "json/json_writer.h"

namespace marey {
namespace {

void write_place(JsonWriter& json, const Trace& trace, const CallTreeNode& node) {
    if (node.thread != kNoRow) {
        const ThreadInfo& thread = trace.threads()[node.thread];
        json.member("thread", trace.string(thread.name)).member("thread_id", thread.id);
        json.member("is_thread", node.is_thread);
    }
    if (node.step) json.member("step", *node.step);
    json.member("is_async", node.is_async).member("is_device", node.is_device);
}

void write_node(JsonWriter& json, const Trace& trace, const CallTreeNode& node) {
    json.begin_object().member("name", node.name).key("parent");
    if (node.parent == kNoRow) {
        json.null();
    } else {
        json.value(node.parent);
    }
    json.member("depth", node.depth).member("count", node.count);
    json.member("total_ns", node.total_ns).member("self_ns", node.self_ns).member("share", node.share);
    write_place(json, trace, node);
    json.end_object();
}

}  // namespace

std::string call_tree_json(const Trace& trace, const CallTree& tree) {
    std::string out;
    JsonWriter json(out, kJsonIndent);
    json.begin_object().member("recorded_ns", tree.recorded_ns).member("device_ns", tree.device_ns);
    json.member("by_thread", tree.by_thread).member("bottom_up", tree.bottom_up);
    json.key("nodes").begin_array();
    for (const CallTreeNode& node : tree.nodes) write_node(json, trace, node);
    json.end_array().end_object();
    out += '\n';
    return out;
}

std::string hot_paths_json(const Trace& trace, const CallTree& tree, std::size_t count) {
    std::string out;
    JsonWriter json(out, kJsonIndent);
    json.begin_object().member("recorded_ns", tree.recorded_ns).member("device_ns", tree.device_ns);
    json.key("hot_path").begin_array();
    for (const std::uint32_t index : hot_path(tree)) {
        const CallTreeNode& node = tree.nodes[index];
        json.begin_object().member("name", node.name).member("count", node.count);
        json.member("total_ns", node.total_ns).member("self_ns", node.self_ns).member("share", node.share);
        write_place(json, trace, node);
        json.end_object();
    }
    json.end_array().key("heaviest").begin_array();
    for (const std::uint32_t end : heaviest_nodes(tree, count)) {
        const CallTreeNode& node = tree.nodes[end];
        json.begin_object().key("path").begin_array();
        for (const std::uint32_t index : path_to(tree, end)) json.value(tree.nodes[index].name);
        json.end_array().member("count", node.count).member("self_ns", node.self_ns);
        write_place(json, trace, node);
        json.end_object();
    }
    json.end_array().end_object();
    out += '\n';
    return out;
}

}  // namespace marey
