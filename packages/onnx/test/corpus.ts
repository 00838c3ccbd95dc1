// Files that are no models of ONNX, or lie.
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import type { OnnxProblem } from "../src/index.js";
import { ModelProtoSchema, type TensorProtoSchema } from "../src/schema/onnx_pb.js";

type Model = MessageInitShape<typeof ModelProtoSchema>;
export type Graph = NonNullable<Exclude<Model["graph"], { $typeName: string }>>;
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
export const file = (graph: Partial<Graph>, model: Partial<Model> = {}): Uint8Array =>
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

/** A file whose tensor lies in another one. */
const outside = (data: Readonly<Record<string, string>>): Uint8Array =>
  tensor({
    dataLocation: 1,
    externalData: Object.entries(data).map(([key, value]) => ({ key, value })),
  } as TensorInit);

export const node = (...nodes: readonly object[]): Uint8Array => file({ node: nodes as never });

const repeated = (each: object, count: number): readonly object[] => new Array(count).fill(each);

/** A field of bytes as protobuf has it. */
function wrapped(field: number, bytes: Uint8Array): Uint8Array {
  const writer = new BinaryWriter();
  writer.tag(field, WireType.LengthDelimited).bytes(bytes);
  return writer.finish();
}

/** So many empty messages of a field. */
const pairs = (tag: number, count: number): Uint8Array =>
  Uint8Array.from({ length: 2 * count }, (_, i) => (i % 2 === 0 ? tag : 0));

/** Branches in branches. */
function nested(depth: number): Uint8Array {
  let graph = new Uint8Array(0);
  for (let i = 0; i < depth; i++) graph = new Uint8Array(wrapped(1, wrapped(5, wrapped(6, graph))));
  return wrapped(7, graph);
}

export const refused: Readonly<Record<string, readonly [OnnxProblem, Uint8Array]>> = {
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
  ...Object.fromEntries(
    ["/etc/passwd", "../weights", "a/../../b", "..\\b", "C:b", "b\0", "", ".", "lost"].map(
      (location) => [
        `data in ${JSON.stringify(location)}`,
        [location === "lost" ? "unsupported" : "malformed", outside({ location })] as const,
      ],
    ),
  ),
  ...Object.fromEntries(
    ["-1", "9007199254740992", "1e3", "0x1", "", "18446744073709551615"].flatMap((number) => [
      [
        `an offset of ${number}`,
        ["malformed", outside({ location: "lost", offset: number })] as const,
      ],
      [
        `a length of ${number}`,
        ["malformed", outside({ location: "lost", length: number })] as const,
      ],
    ]),
  ),
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
  "a million nodes": ["size", file({ node: repeated({ opType: "Relu" }, 1_000_000) as never })],
  "a million empty nodes": ["size", wrapped(7, pairs(0x0a, 1_000_000))],
  "a million empty tensors": ["size", wrapped(7, pairs(0x2a, 1_000_000))],
  "a million empty attributes": ["size", wrapped(7, wrapped(1, pairs(0x2a, 1_000_000)))],
  "graphs in graphs": ["size", nested(90)],
  "graphs in graphs without end": ["size", nested(2000)],
  "an operator with a name of eight megabytes": [
    "unsupported",
    node({ opType: "Z".repeat(2 ** 23), input: ["x"], output: ["y"] }),
  ],
  "a name of many lines": [
    "malformed",
    node({ opType: "Add", name: "a\nb\n".repeat(10_000), input: ["x", "z"], output: ["y"] }),
  ],
  "30,000 unknown operators": [
    "unsupported",
    node(
      ...Array.from({ length: 30_000 }, (_, i) => ({
        ...{ opType: `Zap${i}`, input: [i === 0 ? "x" : `v${i}`] },
        output: [i === 29_999 ? "y" : `v${i + 1}`],
      })),
    ),
  ],
  "an If in a circle": ["malformed", node({ opType: "If", input: ["y"], output: ["y"] })],
  "an If that inputs decide": ["unsupported", node({ opType: "If", input: ["x"], output: ["y"] })],
  "a loop": [
    "unsupported",
    node({
      opType: "Loop",
      input: ["", "x"],
      output: ["y"],
      attribute: [{ name: "body", type: 5, g: {} }],
    }),
  ],
  ...Object.fromEntries(
    [0, 1, 3, 4, 5, 6, 7].flatMap((wire) =>
      [1, 7, 8].map((field) => [
        `field ${field} of wire type ${wire}`,
        ["malformed", Uint8Array.of((field << 3) | wire, 1, 1, 1)] as const,
      ]),
    ),
  ),
  ...Object.fromEntries(
    [1, 5, 11, 12].flatMap((field) =>
      [0, 1, 5, 7].map((wire) => [
        `field ${field} of the graph of wire type ${wire}`,
        [
          "malformed",
          wrapped(7, Uint8Array.of((field << 3) | wire, 1, 1, 1, 1, 1, 1, 1, 1)),
        ] as const,
      ]),
    ),
  ),
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
