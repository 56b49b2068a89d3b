// array_types_test.cpp: the names of element types in NumPy, PyTorch, TensorFlow, struct and DLPack.
#include "bindings/array_types.h"

#include <gtest/gtest.h>

namespace marey::bindings {
namespace {

TEST(ArrayTypes, TypeStringsHaveAnyByteOrder) {
    for (const char* text : {"f4", "<f4", ">f4", "=f4", "|f4"}) EXPECT_EQ(from_typestr(text), DType::Float32);
    EXPECT_EQ(from_typestr("|b1"), DType::Bool);
    EXPECT_EQ(from_typestr("<u8"), DType::UInt64);
    EXPECT_EQ(from_typestr("<c16"), DType::Complex128);
    EXPECT_EQ(from_typestr("<c8"), DType::Complex64);
    for (const char* text : {"<M8[ns]", "<m8[us]", "M8"}) EXPECT_EQ(from_typestr(text), DType::DateTime);
    for (const char* text : {"<U12", "|S3"}) EXPECT_EQ(from_typestr(text), DType::Text);
    EXPECT_EQ(from_typestr("|O8"), DType::Object);
    for (const char* text : {"", "<", "<f16", "|V8", "f4x"})
        EXPECT_EQ(from_typestr(text), DType::Other) << text;
}

TEST(ArrayTypes, TypeNamesMayHaveAModuleOrQuotes) {
    for (const char* text : {"float32", "torch.float32", "jax.numpy.float32", "<dtype: 'float32'>", "float"})
        EXPECT_EQ(from_dtype_name(text), DType::Float32) << text;
    EXPECT_EQ(from_dtype_name("torch.bfloat16"), DType::BFloat16);
    EXPECT_EQ(from_dtype_name("torch.float8_e4m3fn"), DType::Float8E4M3);
    EXPECT_EQ(from_dtype_name("torch.long"), DType::Int64);
    for (const char* text : {"", ".", "'>", "torch.", "float33"})
        EXPECT_EQ(from_dtype_name(text), DType::Other) << text;
}

TEST(ArrayTypes, IntegersOfAFormatHaveTheSizeOfAnItem) {
    EXPECT_EQ(from_format("l", 8), DType::Int64);
    EXPECT_EQ(from_format("<l", 4), DType::Int32);
    EXPECT_EQ(from_format("h", 2), DType::Int16);
    EXPECT_EQ(from_format("b", 1), DType::Int8);
    EXPECT_EQ(from_format("!L", 4), DType::UInt32);
    EXPECT_EQ(from_format("c", 1), DType::UInt8);
    EXPECT_EQ(from_format(nullptr, 1), DType::UInt8);
    EXPECT_EQ(from_format("?", 1), DType::Bool);
    EXPECT_EQ(from_format("e", 2), DType::Float16);
    EXPECT_EQ(from_format("@d", 8), DType::Float64);
    EXPECT_EQ(from_format("Zf", 8), DType::Complex64);
    EXPECT_EQ(from_format("=Zd", 16), DType::Complex128);
    for (const char* text : {"", "<", "ff", "T{f:x:}", "x"})
        EXPECT_EQ(from_format(text, 4), DType::Other) << text;
}

TEST(ArrayTypes, PinnedMemoryBelongsToTheCpuAndManagedMemoryToCuda) {
    for (const long type : {1, 3, 11}) EXPECT_EQ(from_dlpack_device(type), DeviceType::Cpu);
    for (const long type : {2, 10, 13}) EXPECT_EQ(from_dlpack_device(type), DeviceType::Cuda);
    EXPECT_EQ(from_dlpack_device(8), DeviceType::Mps);
    EXPECT_EQ(from_dlpack_device(14), DeviceType::Xpu);
    for (const long type : {-1, 0, 99}) EXPECT_EQ(from_dlpack_device(type), DeviceType::Other);
}

}  // namespace
}  // namespace marey::bindings
