import { create } from "@bufbuild/protobuf";
import { type AttributeProto, AttributeProtoSchema, type TensorProto } from "./schema/onnx_pb.js";

/** The types of attributes, by ONNX's numbers. */
export const attributeType = {
  FLOAT: 1,
  INT: 2,
  STRING: 3,
  TENSOR: 4,
  GRAPH: 5,
  FLOATS: 6,
  INTS: 7,
  STRINGS: 8,
} as const;

/** A whole number, whole numbers, a text, a float, or a tensor: an attribute of a node. */
export type Attribute =
  | number
  | readonly number[]
  | string
  | { readonly float: number }
  | TensorProto;

const text = new TextEncoder();

/** The attribute of a node. Numbers are whole; a float is written `{ float: 0.5 }`. */
export function attributeOf(name: string, value: Attribute): AttributeProto {
  if (typeof value === "number")
    return create(AttributeProtoSchema, { name, type: attributeType.INT, i: BigInt(value) });
  if (typeof value === "string")
    return create(AttributeProtoSchema, {
      name,
      type: attributeType.STRING,
      s: text.encode(value),
    });
  if (isList(value))
    return create(AttributeProtoSchema, {
      name,
      type: attributeType.INTS,
      ints: value.map((each) => BigInt(each)),
    });
  if ("float" in value)
    return create(AttributeProtoSchema, { name, type: attributeType.FLOAT, f: value.float });
  return create(AttributeProtoSchema, { name, type: attributeType.TENSOR, t: value });
}

const isList = (value: Attribute): value is readonly number[] => Array.isArray(value);
