"""The messages of a serialized HLO module, as far as they are read: numbers and types of fields.

Built as descriptors at first use, so that neither generated code nor a compiler is needed. Three kinds of
field:

- *read*: declared with its type. Everything that decides what an instruction computes is here.
- *skipped*: declared too, submessages as plain bytes, and never looked at. Each has its reason in
  ``SKIPPED``.
- everything else is unknown. Its meaning could change what the instruction computes, so ``wire`` refuses a
  file that sets such a field and names it.

Packed floats are declared as bytes: on the wire they are the little-endian array itself.
"""

from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

from scalify.load.protobuf import message_classes

PACKAGE = "scalify.hlo"

MESSAGES: Mapping[str, str] = MappingProxyType(
    {
        "Layout": "minor_to_major 1 int64*, tiles 6 bytes*, element_size_in_bits 7 int64, "
        "memory_space 8 int64, dim_level_types 9 int64*, physical_shape 10 bytes, "
        "index_primitive_type 11 int64, pointer_primitive_type 12 int64, dim_unique 13 "
        "bool*, dim_ordered 14 bool*, dynamic_shape_metadata_prefix_bytes 15 int64, "
        "tail_padding_alignment_in_elements 16 int64, split_configs 17 bytes*",
        "Shape": "element_type 2 int32, dimensions 3 int64*, tuple_shapes 4 Shape*, layout 5 Layout, "
        "is_dynamic_dimension 6 bool*",
        "Literal": "shape 1 Shape, preds 2 bool*, u8s 3 bytes, s32s 4 int32*, s64s 5 int64*, u32s 6 "
        "uint32*, u64s 7 uint64*, f32s 8 bytes, f64s 9 bytes, f16s 11 bytes, c64s 12 bytes, "
        "bf16s 13 bytes, s8s 15 bytes, u16s 16 bytes, s16s 17 bytes, c128s 18 bytes, "
        "f8e5m2s 19 bytes, f8e4m3fns 20 bytes",
        "Metadata": "op_type 1 bytes, op_name 2 string, source_file 3 string, source_line 4 int32, "
        "profile_type 5 int64*, creation_pass_id 6 int64, logical_creation_pass_id 7 int64, "
        "code_size 8 int64, working_set 9 int64, profile_info 10 bytes, deduplicated_name "
        "12 bytes, preserve_layout 13 bool, stack_frame_id 15 int32, scheduling_name 16 "
        "bytes, source_end_line 17 int32, source_column 18 int32, source_end_column 19 "
        "int32",
        "Slice": "start 1 int64, limit 2 int64, stride 3 int64",
        "Dot": "lhs_contracting 1 int64*, rhs_contracting 2 int64*, lhs_batch 3 int64*, rhs_batch 4 int64*",
        "Gather": "offset 1 int64*, collapsed 2 int64*, start_map 3 int64*, index_vector 4 int64, "
        "operand_batch 5 int64*, indices_batch 6 int64*",
        "Conv": "kernel_input 3 int64, kernel_output 4 int64, kernel_spatial 6 int64*, input_batch "
        "7 int64, input_feature 8 int64, output_batch 9 int64, output_feature 10 int64, "
        "input_spatial 11 int64*, output_spatial 12 int64*",
        "WindowDim": "size 1 int64, stride 2 int64, low 3 int64, high 4 int64, window_dilation 5 int64, "
        "base_dilation 6 int64, reversal 7 bool",
        "Window": "dimensions 1 WindowDim*",
        "PaddingDim": "low 1 int64, high 2 int64, interior 3 int64",
        "Padding": "dimensions 1 PaddingDim*",
        "Group": "ids 1 int64*",
        "IotaGroups": "groups 1 int64, group_size 2 int64, reshape 3 int64*, transpose 4 int32*",
        "Devices": "groups 1 Group*, iota 2 IotaGroups",
        "Pair": "source 1 int64, target 2 int64",
        "Instruction": "name 1 string, opcode 2 string, shape 3 Shape, metadata 7 Metadata, literal 8 "
        "Literal, parameter_number 9 int64, fusion_kind 11 bytes, tuple_index 13 int64, "
        "dimensions 14 int64*, window 15 Window, conv 16 Conv, slices 17 Slice*, "
        "exponent_bits 18 int32, mantissa_bits 19 int32, dynamic_slice_sizes 20 int64*, "
        "padding 21 Padding, outfeed_config 22 bytes, distribution 23 int64, epsilon 24 "
        "float, feature_index 25 int64, channel 26 int64, infeed_config 27 bytes, target 28 "
        "string, outfeed_shape 29 bytes, dot 30 Dot, fft_type 31 int64, fft_length 32 "
        "int64*, gather 33 Gather, gather_sizes 34 int64*, id 35 int64, operands 36 int64*, "
        "control_predecessors 37 int64*, called 38 int64*, sharding 40 bytes, "
        "backend_config 43 bytes, all_reduce_id 45 int64, is_host_transfer 47 bool, scatter "
        "48 Gather, groups 49 Group*, feature_groups 50 int64, precision_config 51 bytes, "
        "pairs 52 Pair*, domain_entry 54 bytes, domain_exit 55 bytes, constrain_layout 56 "
        "bool, operand_layouts 57 bytes*, batch_groups 58 int64, triangular_solve 59 bytes, "
        "stable 60 bool, parameter_replication 61 bytes, cholesky 62 bytes, direction 63 "
        "string, side_effect 65 bool, delta 66 int64, indices_are_sorted 67 bool, "
        "frontend_attributes 68 bytes, unique_indices 69 bool, rng_algorithm 70 int64, "
        "global_ids 71 bool, comparison_type 72 bytes, is_cross_program_prefetch 73 bool, "
        "output_operand_aliasing 74 bytes*, padding_type 75 int64, custom_call_schedule 76 "
        "int64, custom_call_api_version 77 int64, async_execution_thread 79 bytes, "
        "cross_program_prefetch_index 80 int32, k 81 int64, statistics_viz 82 bytes, "
        "largest 85 bool, devices 87 Devices, original_value 88 bytes, is_composite 89 "
        "bool, result_accuracy 91 bytes",
        "Computation": "name 1 string, instructions 2 Instruction*, program_shape 4 bytes, id 5 int64, "
        "root 6 int64, is_fusion 7 bool, execution_thread 8 bytes",
        "AliasEntry": "output 1 int64*, parameter 2 int64, parameter_path 3 int64*, kind 4 int64",
        "Aliases": "entries 1 AliasEntry*",
        "DeviceAssignment": "replicas 1 int32, partitions 2 int32, devices 3 bytes*",
        "FileLocation": "file 1 int32, function 2 int32, line 3 int32, column 4 int32, end_line 5 int32, "
        "end_column 6 int32",
        "StackFrame": "location 1 int32, parent 2 int32",
        "Frames": "files 1 string*, functions 2 string*, locations 3 FileLocation*, frames 4 StackFrame*",
        "Module": "name 1 string, entry_name 2 string, computations 3 Computation*, "
        "host_program_shape 4 bytes, id 5 int64, entry 6 int64, schedule 7 bytes, aliases 8 "
        "Aliases, cross_program_prefetches 10 bytes*, is_dynamic 11 bool, output_sharding "
        "12 bytes, profile_info 13 bytes*, parameter_shardings 14 bytes*, device_assignment "
        "15 DeviceAssignment, use_auto_partitioning 16 bool, frames 17 Frames, buffer_donor "
        "18 bytes, frontend_attributes 19 bytes, original_values 20 bytes",
        "Wrapped": "module 1 Module, buffer_assignment 3 bytes",
    }
)

SKIPPED: Mapping[str, str] = MappingProxyType(
    {
        "Metadata.*": "only op_name, source lines and the frame say where an instruction came from",
        "Layout.memory_space": "where a value lies does not change it",
        "Instruction.fusion_kind": "how a fusion is scheduled; its computation says what it computes",
        "Instruction.control_predecessors": "order of execution where no data says it",
        "Instruction.sharding": "an annotation: partitioners act on it, values do not depend on it",
        "Instruction.precision_config": "rounding; scalify compares over the reals",
        "Instruction.result_accuracy": "rounding",
        "Instruction.comparison_type": "how NaNs and signed zeros compare; not over the reals",
        "Instruction.constrain_layout": "layout",
        "Instruction.operand_layouts": "layout",
        "Instruction.output_operand_aliasing": "which buffer holds a result",
        "Instruction.parameter_replication": "a promise about inputs, which are related in the open",
        "Instruction.indices_are_sorted": "a promise that allows faster code",
        "Instruction.frontend_attributes": "hints to the backend",
        "Instruction.is_cross_program_prefetch": "when a copy is made",
        "Instruction.cross_program_prefetch_index": "when a copy is made",
        "Instruction.custom_call_schedule": "order of execution",
        "Instruction.custom_call_api_version": "calling convention",
        "Instruction.async_execution_thread": "which thread runs it",
        "Instruction.statistics_viz": "for drawing",
        "Instruction.original_value": "for debugging",
        "Instruction.is_composite": "a name for a call; the called computation is inlined",
        "Computation.program_shape": "repeats the shapes of parameters and root",
        "Module.schedule": "order of execution",
        "Module.host_program_shape": "repeats the shapes of the entry computation",
        "Module.*_sharding*": "annotations on the unpartitioned program",
        "Module.buffer_donor": "which buffers may be reused",
    }
)


def message_class(name: str) -> Any:
    """The class of one message, ``Module`` for a file. Its fields are those of ``MESSAGES``."""
    return _classes()[name]


@cache
def _classes() -> Mapping[str, Any]:
    return message_classes(PACKAGE, MESSAGES)
