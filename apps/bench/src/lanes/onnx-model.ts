/**
 * ONNX models of a single node, written as the protocol buffers that onnx.proto3 describes: enough for one op, its
 * attributes and its shapes.
 */
export interface OnnxNode {
  readonly op: string;
  readonly type: "float32" | "float16";
  readonly attributes?: Readonly<Record<string, OnnxAttribute>>;
  readonly inputs: Readonly<Record<string, readonly number[]>>;
  readonly output: readonly number[];
}

/** Whole numbers are INT, others FLOAT, arrays INTS. */
type OnnxAttribute = number | string | readonly number[];

export function onnxModel({ op, type, attributes = {}, inputs, output }: OnnxNode): Uint8Array {
  const node = [
    ...Object.keys(inputs).flatMap((name) => text(1, name)),
    ...text(2, "out"),
    ...text(4, op),
    ...Object.entries(attributes).flatMap(([name, value]) => bytes(5, attribute(name, value))),
  ];
  const graph = [
    ...bytes(1, node),
    ...text(2, "graph"),
    ...Object.entries(inputs).flatMap(([name, dims]) => bytes(11, valueInfo(name, type, dims))),
    ...bytes(12, valueInfo("out", type, output)),
  ];
  const opset = [...text(1, ""), ...integer(2, 17)];
  return Uint8Array.from([...integer(1, 8), ...bytes(7, graph), ...bytes(8, opset)]);
}

const elementTypes = { float32: 1, float16: 10 } as const;

function valueInfo(name: string, type: OnnxNode["type"], dims: readonly number[]): number[] {
  const shape = dims.flatMap((size) => bytes(1, integer(1, size)));
  const tensor = [...integer(1, elementTypes[type]), ...bytes(2, shape)];
  return [...text(1, name), ...bytes(2, bytes(1, tensor))];
}

function attribute(name: string, value: OnnxAttribute): number[] {
  const own = text(1, name);
  if (typeof value === "string") return [...own, ...text(4, value), ...integer(20, 3)];
  if (typeof value !== "number")
    return [...own, ...value.flatMap((v) => integer(8, v)), ...integer(20, 7)];
  return Number.isInteger(value)
    ? [...own, ...integer(3, value), ...integer(20, 2)]
    : [...own, ...float(2, value), ...integer(20, 1)];
}

function variableLength(value: number): number[] {
  const out: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  do {
    const low = Number(rest & 127n);
    rest >>= 7n;
    out.push(rest > 0n ? low | 128 : low);
  } while (rest > 0n);
  return out;
}

const tag = (field: number, wire: number): number[] => variableLength((field << 3) | wire);
const integer = (field: number, value: number): number[] => [
  ...tag(field, 0),
  ...variableLength(value),
];
const bytes = (field: number, content: readonly number[]): number[] => [
  ...tag(field, 2),
  ...variableLength(content.length),
  ...content,
];
const text = (field: number, value: string): number[] =>
  bytes(field, [...new TextEncoder().encode(value)]);
const float = (field: number, value: number): number[] => [
  ...tag(field, 5),
  ...new Uint8Array(Float32Array.of(value).buffer),
];
