// Graphs within graphs: the branch of an If that its constant condition takes.
import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { noGrad } from "@halfstep/tensor";
import { expect, test } from "vitest";
import { attributeOf } from "../src/attributes.js";
import { fromOnnx, OnnxError } from "../src/index.js";
import {
  AttributeProtoSchema,
  type GraphProtoSchema,
  ModelProtoSchema,
  type NodeProtoSchema,
  TensorProtoSchema,
} from "../src/schema/onnx_pb.js";
import { runtime } from "./cases.js";
import { runOnnx } from "./session.js";

type Graph = MessageInitShape<typeof GraphProtoSchema>;
type Node = MessageInitShape<typeof NodeProtoSchema>;

const port = (name: string, elemType = 1) => ({
  name,
  type: {
    value: {
      case: "tensorType" as const,
      value: { elemType, shape: { dim: [{ value: { case: "dimParam" as const, value: "n" } }] } },
    },
  },
});
const numbers = (name: string, floatData: number[]) =>
  create(TensorProtoSchema, { name, dims: [BigInt(floatData.length)], dataType: 1, floatData });
const flag = (name: string, value: boolean) =>
  create(TensorProtoSchema, { name, dims: [], dataType: 9, int32Data: [value ? 1 : 0] });
const graph = (name: string, g: Graph) =>
  create(AttributeProtoSchema, { name, type: 5, g: { name, ...g } as Graph });

/** An If of two branches. */
const branch = (
  { input, output, name = "if" }: { input: string; output: string[]; name?: string },
  then: Graph,
  otherwise: Graph,
): Node => ({
  ...{ opType: "If", name, input: [input], output },
  attribute: [graph("then_branch", then), graph("else_branch", otherwise)],
});

const file = (given: Graph): Uint8Array =>
  toBinary(
    ModelProtoSchema,
    create(ModelProtoSchema, {
      irVersion: 8n,
      opsetImport: [{ domain: "", version: 17n }],
      graph: { name: "g", input: [port("x")], output: [port("y")], ...given } as never,
    }),
  );

const scaled = (by: number[], output = "z"): Graph => ({
  initializer: [numbers("inner", by)],
  node: [{ opType: "Mul", input: ["x", "inner"], output: [output] }],
  output: [port(output)],
});

/** As {@link scaled}, twice, and one more node. */
const withOutputs = (by: number[], outputs: string[], node: Node): Graph => ({
  initializer: [numbers("inner", by)],
  node: [
    { opType: "Mul", input: ["x", "inner"], output: ["z"] },
    { opType: "Identity", input: ["z"], output: ["z2"] },
    node,
  ],
  output: outputs.map((name) => port(name)),
});

/** Whether a file is read as ONNX Runtime runs it. */
async function bothGive(bytes: Uint8Array): Promise<number[]> {
  const x = runtime.tensor([1, -2, 3]);
  const { y } = noGrad(() => fromOnnx(runtime, bytes).forward({ x }));
  const found = Array.from((await y?.toArray()) ?? []);
  const [wanted] = Object.values(await runOnnx(bytes, { x }));
  expect(found).toEqual(wanted?.values);
  return found;
}

test.each([
  ["then", true, [2, -4, 6]],
  ["else", false, [3, -6, 9]],
])("the %s branch takes the place of an If", async (_, value, wanted) => {
  const node = branch({ input: "c", output: ["y"] }, scaled([2]), scaled([3]));
  const c = flag("c", value);
  expect(await bothGive(file({ initializer: [c], node: [node] }))).toEqual(wanted);
  const made: Node = { opType: "Constant", output: ["c"], attribute: [attributeOf("value", c)] };
  expect(await bothGive(file({ node: [made, node] }))).toEqual(wanted);
  const turned: Node[] = [
    { opType: "Not", input: ["c"], output: ["d"] },
    { opType: "Identity", input: ["d"], output: ["e"] },
    branch({ input: "e", output: ["y"] }, scaled([3]), scaled([2])),
  ];
  expect(await bothGive(file({ initializer: [c], node: turned }))).toEqual(wanted);
});

test("names of graphs around it are known in a branch, and branches keep theirs apart", async () => {
  const inside = branch(
    { input: "c", output: ["u"] },
    {
      node: [{ opType: "Add", input: ["before", "inner"], output: ["t"] }],
      output: [port("t")],
    },
    scaled([7]),
  );
  const outside = branch(
    { input: "c", output: ["v"] },
    {
      initializer: [numbers("inner", [10])],
      node: [{ opType: "Neg", input: ["x"], output: ["t2"] }, inside],
      output: [port("u")],
    },
    scaled([7]),
  );
  const again = branch(
    { input: "c", output: ["w", "same", "kept"], name: "" },
    withOutputs([100], ["z", "z2", "k"], {
      ...{ opType: "Identity", input: ["v"], output: ["k"] },
    }),
    withOutputs([7], ["z", "z2", "k"], { opType: "Neg", input: ["x"], output: ["k"] }),
  );
  const node: Node[] = [
    { opType: "Abs", input: ["x"], output: ["before"] },
    ...[outside, again],
    { opType: "Add", input: ["v", "w"], output: ["s1"] },
    { opType: "Sub", input: ["s1", "same"], output: ["s2"] },
    { opType: "Add", input: ["s2", "kept"], output: ["y"] },
  ];
  // 2 (|x| + 10): the branch's own 10, under the name that the others have for other numbers.
  const bytes = file({ initializer: [flag("c", true)], node });
  expect(await bothGive(bytes)).toEqual([22, 24, 26]);
  const names = fromOnnx(runtime, bytes).nodes.keys();
  expect(names).toContain("if/if/Add_2");
});

test("a branch that is not taken may have anything", async () => {
  const strange: Graph = {
    node: [{ opType: "Zap", input: ["nothing"], output: ["z"] }],
    output: [port("z")],
  };
  const node = branch({ input: "c", output: ["y"] }, scaled([2]), strange);
  const read = fromOnnx(runtime, file({ initializer: [flag("c", true)], node: [node] }));
  expect([...read.parameters()].length).toBe(0);
  const { y } = read.forward({ x: runtime.tensor([1]) });
  expect(Array.from((await y?.toArray()) ?? [])).toEqual([2]);
  const other = file({ initializer: [flag("c", false)], node: [node] });
  expect(() => fromOnnx(runtime, other)).toThrow('takes "nothing"');
});

test("a condition that inputs decide is refused, and named", () => {
  const node: Node[] = [
    { opType: "Equal", input: ["x", "x"], output: ["c"] },
    branch({ input: "c", output: ["y"], name: "choice" }, scaled([2]), scaled([3])),
  ];
  const reading = (): unknown => fromOnnx(runtime, file({ node }));
  expect(reading).toThrow(OnnxError);
  expect(reading).toThrow(
    'If choice: its condition "c" is no constant: export the model for inputs of fixed sizes, or without the branch',
  );
  expect(reading).toThrow(expect.objectContaining({ problem: "unsupported", unsupported: ["If"] }));
});

test("branches that do not fit are refused", () => {
  const refused = (node: Node, words: string): void =>
    expect(() => fromOnnx(runtime, file({ initializer: [flag("c", true)], node: [node] }))).toThrow(
      words,
    );
  refused({ opType: "If", name: "if", input: ["c"], output: ["y"] }, "gives no results of 1");
  refused({ opType: "If", name: "if", input: ["d"], output: ["y"] }, 'takes "d"');
  const two: Graph = {
    node: [{ opType: "Neg", input: ["x"], output: ["z"] }],
    output: [port("z"), port("z")],
  };
  refused(branch({ input: "c", output: ["y"] }, two, two), "gives 2 results of 1");
  const twice: Graph = {
    initializer: [numbers("z", [1])],
    node: [{ opType: "Neg", input: ["x"], output: ["z"] }],
    output: [port("z")],
  };
  refused(branch({ input: "c", output: ["y"] }, twice, twice), "the name of two values");
  const loop: Node = {
    ...{ opType: "Loop", input: ["", "c"], output: ["y"] },
    attribute: [graph("body", scaled([2]))],
  };
  refused(loop, "not supported: Loop");
});

test("a Dropout whose mask nothing reads gives what it takes", async () => {
  const node: Node[] = [{ opType: "Dropout", input: ["x"], output: ["y", "mask"] }];
  expect(await bothGive(file({ node }))).toEqual([1, -2, 3]);
});
