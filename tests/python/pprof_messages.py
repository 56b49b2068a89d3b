"""pprof's profile.proto as classes of google.protobuf, without protoc."""

import pytest

pytest.importorskip("google.protobuf")

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

# message -> fields, in order of their numbers from 1: a name, with * if repeated, and a type (int64 if none).
MESSAGES = {
    "ValueType": "type unit",
    "Label": "key str num num_unit",
    "Sample": "location_id*:uint64 value* label*:Label",
    "Mapping": "id:uint64 memory_start:uint64 memory_limit:uint64 file_offset:uint64 filename build_id",
    "Line": "function_id:uint64 line column",
    "Location": "id:uint64 mapping_id:uint64 address:uint64 line*:Line",
    "Function": "id:uint64 name system_name filename start_line",
    "Profile": "sample_type*:ValueType sample*:Sample mapping*:Mapping location*:Location function*:Function "
    "string_table*:string drop_frames keep_frames time_nanos duration_nanos period_type:ValueType period comment* "
    "default_sample_type",
}


def _profile():
    kinds = descriptor_pb2.FieldDescriptorProto
    scalars = {"int64": kinds.TYPE_INT64, "uint64": kinds.TYPE_UINT64, "string": kinds.TYPE_STRING}
    file = descriptor_pb2.FileDescriptorProto(name="profile.proto", package="perftools.profiles", syntax="proto3")
    for name, fields in MESSAGES.items():
        message = file.message_type.add(name=name)
        for number, field in enumerate(fields.split(), 1):
            text, _, kind = field.partition(":")
            added = message.field.add(name=text.rstrip("*"), number=number)
            added.label = kinds.LABEL_REPEATED if text.endswith("*") else kinds.LABEL_OPTIONAL
            if kind in MESSAGES:
                added.type, added.type_name = kinds.TYPE_MESSAGE, f".perftools.profiles.{kind}"
            else:
                added.type = scalars[kind or "int64"]
    pool = descriptor_pool.DescriptorPool()
    pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName("perftools.profiles.Profile"))


Profile = _profile()
