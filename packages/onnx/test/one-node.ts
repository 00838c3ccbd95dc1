// Files of one node, by ONNX Runtime and here.
import { create, toBinary } from "@bufbuild/protobuf";
import type { Tensor } from "@halfstep/tensor";
import { type Attribute, attributeOf } from "../src/attributes.js";
import { type DataType, dataType } from "../src/data-type.js";
import { bytesOf } from "../src/export/graph-builder.js";
import { fromOnnx } from "../src/index.js";
import { ModelProtoSchema } from "../src/schema/onnx_pb.js";
import { runtime } from "./cases.js";
import { runOnnx } from "./session.js";

/** Numbers that the file holds: int64 or float32. */
export interface Constant {
  readonly type?: DataType;
  readonly shape: readonly number[];
  readonly values: readonly number[];
}

/** An operand: the shape of an input of float32, a tensor that is fed, or numbers of the file. */
type Operand = readonly number[] | Tensor | Constant;

const isShape = (operand: Operand): operand is readonly number[] => Array.isArray(operand);
const isConstant = (operand: Operand): operand is Constant =>
  !isShape(operand) && "values" in operand;

/** Operands of bool have names that begin so. */
const isMask = (name: string): boolean => name.startsWith("mask");

const typeOf = (elemType: number, sizes?: readonly number[]) => {
  const dim = sizes?.map((size) => ({
    value: { case: "dimValue" as const, value: BigInt(size) },
  }));
  const value = { elemType, ...(dim && { shape: { dim } }) };
  return { value: { case: "tensorType" as const, value } };
};

const elementOf = (name: string, operand: Operand): number => {
  if (isMask(name)) return dataType.BOOL;
  const dtype = isShape(operand) ? "float32" : (operand as Tensor).dtype;
  return dtype === "float32" ? dataType.FLOAT : dataType.INT64;
};

/** A file of one node, from operands by name to y. */
export function fileOf(
  operator: string,
  attributes: Readonly<Record<string, Attribute>>,
  operands: Readonly<Record<string, Operand>>,
  { output = dataType.FLOAT, opset = 17 }: { output?: number; opset?: number } = {},
): Uint8Array {
  const node = {
    opType: operator,
    input: Object.keys(operands),
    output: ["y"],
    attribute: Object.entries(attributes).map(([name, value]) => attributeOf(name, value)),
  };
  const given = Object.entries(operands);
  return toBinary(
    ModelProtoSchema,
    create(ModelProtoSchema, {
      irVersion: 8n,
      opsetImport: [{ domain: "", version: BigInt(opset) }],
      graph: {
        name: "one",
        node: [node],
        initializer: given.flatMap(([name, operand]) => {
          if (!isConstant(operand)) return [];
          const { type = dataType.FLOAT, shape, values } = operand;
          const dims = shape.map(BigInt);
          return [{ name, dims, dataType: type, rawData: bytesOf(type, values) }];
        }),
        input: given.flatMap(([name, operand]) =>
          isConstant(operand)
            ? []
            : [
                {
                  name,
                  type: typeOf(
                    elementOf(name, operand),
                    isShape(operand) ? operand : operand.shape,
                  ),
                },
              ],
        ),
        output: [{ name: "y", type: typeOf(output) }],
      },
    }),
  );
}

/** How one node differs from ONNX Runtime in its shape or numbers; "" where it does not. */
export async function difference(
  operator: string,
  attributes: Readonly<Record<string, Attribute>>,
  operands: Readonly<Record<string, Tensor | Constant>>,
  more: { readonly output?: number; readonly opset?: number } = {},
): Promise<string> {
  const bytes = fileOf(operator, attributes, operands, more);
  const feeds = Object.fromEntries(
    Object.entries(operands).filter((each): each is [string, Tensor] => !isConstant(each[1])),
  );
  const { dims, values = [] } =
    (await runOnnx(bytes, feeds, Object.keys(feeds).filter(isMask))).y ?? {};
  const { y } = fromOnnx(runtime, bytes).forward(feeds);
  const found = Array.from((await y?.toArray()) ?? [], Number);
  const isNear = (v: number, i: number): boolean => {
    const wanted = values[i] as number;
    const isClose = Math.abs(v - wanted) <= 1e-5 * Math.max(1, Math.abs(wanted));
    return isClose || v === wanted || (Number.isNaN(v) && Number.isNaN(wanted));
  };
  const isSame = `${y?.shape}` === `${dims}` && found.every(isNear);
  return isSame ? "" : `[${y?.shape}] ${found.slice(0, 9)}, not [${dims}] ${values.slice(0, 9)}`;
}
