// Files that are no models, or lie: each is refused with an OnnxError, in time and memory that its length bounds.
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { fromOnnx, OnnxError, type OnnxProblem, toOnnx } from "../src/index.js";
import { ModelProtoSchema, type TensorProtoSchema } from "../src/schema/onnx_pb.js";
import { cases, runtime } from "./cases.js";

type Model = MessageInitShape<typeof ModelProtoSchema>;
type Graph = NonNullable<Exclude<Model["graph"], { $typeName: string }>>;
type TensorInit = MessageInitShape<typeof TensorProtoSchema>;

const port = (name: string) => ({
  name,
  type: {
    value: {
      case: "tensorType" as const,
      value: { elemType: 1, shape: { dim: [{ value: { case: "dimValue" as const, value: 2n } }] } },
    },
  },
});

/** A file of one node that adds a tensor to the input, changed. */
const file = (graph: Partial<Graph>, model: Partial<Model> = {}): Uint8Array =>
  toBinary(
    ModelProtoSchema,
    create(ModelProtoSchema, {
      opsetImport: [{ domain: "", version: 17n }],
      ...model,
      graph: {
        node: [{ opType: "Add", input: ["x", "w"], output: ["y"], name: "add" }],
        initializer: [{ name: "w", dims: [2n], dataType: 1, floatData: [1, 2] }],
        input: [port("x")],
        output: [port("y")],
        ...graph,
      },
    } as Model),
  );

const tensor = (changed: TensorInit): Uint8Array =>
  file({
    initializer: [{ name: "w", dims: [2n], dataType: 1, ...changed } as TensorInit],
  } as Partial<Graph>);

const node = (...nodes: readonly object[]): Uint8Array => file({ node: nodes as never });

const refused: Readonly<Record<string, readonly [OnnxProblem, Uint8Array]>> = {
  "no bytes": ["malformed", new Uint8Array(0)],
  text: ["malformed", new TextEncoder().encode("version https://git-lfs.github.com/spec/v1\n")],
  zeros: ["malformed", new Uint8Array(100)],
  "a length beyond the file": ["malformed", Uint8Array.of(0x3a, 0xff, 0xff, 0xff, 0xff, 0x07)],
  "no nodes": ["malformed", file({ node: [] })],
  "no opset": ["unsupported", file({}, { opsetImport: [] })],
  "opset 12": [
    "unsupported",
    file({}, { opsetImport: [{ domain: "", version: 12n }] } as Partial<Model>),
  ],
  "opset 2^62": [
    "unsupported",
    file({}, { opsetImport: [{ domain: "", version: 2n ** 62n }] } as Partial<Model>),
  ],
  functions: ["unsupported", file({}, { functions: [{ name: "f" }] } as Partial<Model>)],
  "sparse tensors": ["unsupported", file({ sparseInitializer: [{}] } as Partial<Graph>)],
  "a tensor of a petabyte": [
    "malformed",
    tensor({ dims: [2n ** 24n, 2n ** 24n], rawData: new Uint8Array(8) }),
  ],
  "a tensor of a negative size": ["malformed", tensor({ dims: [-2n], rawData: new Uint8Array(8) })],
  "sizes whose product overflows": [
    "malformed",
    tensor({ dims: [2n ** 62n, 2n ** 62n], rawData: new Uint8Array(8) }),
  ],
  "too many dimensions": [
    "malformed",
    tensor({ dims: new Array<bigint>(1000).fill(1n), rawData: new Uint8Array(4) }),
  ],
  "too few bytes": ["malformed", tensor({ rawData: new Uint8Array(7) })],
  "too few elements": ["malformed", tensor({ floatData: [1] })],
  "elements in the wrong field": ["malformed", tensor({ int64Data: [1n, 2n] })],
  "a type that is none": ["unsupported", tensor({ dataType: 99, rawData: new Uint8Array(8) })],
  "data in another file": [
    "unsupported",
    tensor({
      dataLocation: 1,
      externalData: [{ key: "location", value: "/etc/passwd" }],
    } as TensorInit),
  ],
  "a name twice": ["malformed", node({ opType: "Add", input: ["x", "w"], output: ["w"] })],
  "a node that takes what is not there": [
    "malformed",
    node({ opType: "Add", input: ["x", "z"], output: ["y"] }),
  ],
  "a circle": [
    "malformed",
    node(
      { opType: "Add", input: ["x", "b"], output: ["a"] },
      { opType: "Add", input: ["a", "w"], output: ["b"] },
    ),
  ],
  "an output that is not there": ["malformed", file({ output: [port("z")] } as Partial<Graph>)],
  "unknown operators, all named": [
    "unsupported",
    node(
      { opType: "Zap", input: ["x"], output: ["a"] },
      { opType: "constructor", input: ["a"], output: ["b"] },
      { opType: "Add", domain: "com.acme", input: ["b", "w"], output: ["y"] },
    ),
  ],
  "a graph within a graph": [
    "unsupported",
    node({
      opType: "Add",
      input: ["x", "w"],
      output: ["y"],
      attribute: [{ name: "body", type: 5 }],
    }),
  ],
};

test.each(Object.entries(refused))("%s", (_, [problem, bytes]) => {
  const reading = (): unknown => fromOnnx(runtime, bytes);
  expect(reading).toThrow(OnnxError);
  expect(reading).toThrow(expect.objectContaining({ problem }));
});

test("all unknown operators are named at once", () => {
  const [, bytes] = refused["unknown operators, all named"] as readonly [OnnxProblem, Uint8Array];
  expect(() => fromOnnx(runtime, bytes)).toThrow("not supported: Zap, com.acme.Add, constructor");
});

test("graphs that would compute without bound are refused when they run", () => {
  const x = runtime.tensor([1, 2]);
  const run = (bytes: Uint8Array): unknown => fromOnnx(runtime, bytes).forward({ x });
  const shape = (dims: readonly bigint[]) => ({
    initializer: [{ name: "w", dims: [BigInt(dims.length)], dataType: 7, int64Data: [...dims] }],
  });
  const bomb = file({
    ...shape([2n ** 20n, 2n ** 20n]),
    node: [
      { opType: "ConstantOfShape", input: ["w"], output: ["a"] },
      { opType: "Add", input: ["x", "a"], output: ["y"] },
    ],
  } as Partial<Graph>);
  expect(() => run(bomb)).toThrow(OnnxError);
  const odd = file({
    ...shape([3n, -1n]),
    node: [{ opType: "Reshape", input: ["x", "w"], output: ["y"] }],
  } as Partial<Graph>);
  expect(() => run(odd)).toThrow("does not fill");
  const turned = node({
    ...{ opType: "Transpose", name: "turn", input: ["x"], output: ["y"] },
    attribute: [{ name: "perm", type: 7, ints: [5n] }],
  });
  expect(() => run(turned)).toThrow("Transpose turn cannot be computed");
});

test("names of nodes are no members of modules", () => {
  const names = ["get", "keys", "forward", "constructor", "__proto__", "", "a.b", "/a/b", "//"];
  const nodes = names.map((name, i) => ({
    ...{ opType: "Add", name, input: [i === 0 ? "x" : `v${i - 1}`, "w"] },
    output: [i === names.length - 1 ? "y" : `v${i}`],
  }));
  const model = fromOnnx(runtime, node(...nodes));
  expect(model.nodes.keys().length).toBe(names.length);
  const { y } = model.forward({ x: runtime.tensor([1, 2]) });
  expect(y?.shape).toEqual([2]);
});

test("a file that is cut off or changed anywhere is read or refused", async () => {
  const make = cases.MLP as NonNullable<typeof cases.MLP>;
  const { model, example } = make();
  const bytes = await toOnnx(model, example);
  const outcomes = new Set<string>();
  const open = (changed: Uint8Array): void => {
    try {
      fromOnnx(runtime, changed);
      outcomes.add("read");
    } catch (error) {
      outcomes.add(error instanceof OnnxError ? error.problem : String(error));
    }
  };
  for (let length = 0; length < bytes.length; length += 3) open(bytes.slice(0, length));
  for (let at = 0; at < bytes.length; at += 2)
    for (const value of [0, 0x7f, 0xff]) open(bytes.with(at, value));
  expect([...outcomes].sort()).toEqual(["malformed", "read", "unsupported"]);
});
