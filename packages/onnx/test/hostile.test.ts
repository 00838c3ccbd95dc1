// Files that are no models, or lie: each is refused with an OnnxError, in time and memory that its length bounds.
import { expect, test } from "vitest";
import { fromOnnx, OnnxError, type OnnxProblem, toOnnx } from "../src/index.js";
import { cases, runtime } from "./cases.js";
import { file, type Graph, node, refused } from "./corpus.js";

test.each(Object.entries(refused))("%s", (_, [problem, bytes]) => {
  let found: unknown;
  try {
    fromOnnx(runtime, bytes, { source: "m.onnx" });
  } catch (error) {
    found = error;
  }
  expect(found).toBeInstanceOf(OnnxError);
  const { message, source, problem: said } = found as OnnxError;
  expect([said, source]).toEqual([problem, "m.onnx"]);
  // One line of bounded length, with a remedy at its end.
  expect(message).toMatch(/^m\.onnx: .*: \S.*$/);
  expect(message.length).toBeLessThan(1000);
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
