import { expect, test } from "vitest";
import { onnxModel } from "./onnx-model.js";

const hex = (bytes: Uint8Array): string => Buffer.from(bytes).toString("hex");

test("a model of one node, field by field of onnx.proto3", () => {
  const model = onnxModel({
    op: "Softmax",
    type: "float16",
    attributes: { axis: -1 },
    inputs: { x: [2, 300] },
    output: [2, 300],
  });
  const value = (name: string) =>
    `0a${name.length === 1 ? "01" : "03"}${Buffer.from(name).toString("hex")}` +
    // type { tensor_type { elem_type: 10, shape { dim { 2 }, dim { 300 } } } }
    "120f0a0d080a12090a0208020a0308ac02";
  const attribute = "0a0461786973" + "18ffffffffffffffffff01" + "a00102";
  const node = `0a0178${"12036f7574"}${"2207536f66746d6178"}2a14${attribute}`;
  const graph =
    `0a${length(node)}${node}` +
    "120567726170" +
    "68" +
    `5a${length(value("x"))}${value("x")}` +
    `62${length(value("out"))}${value("out")}`;
  expect(hex(model)).toBe(`08083a${length(graph)}${graph}42040a001011`);
});

const length = (content: string): string => (content.length / 2).toString(16).padStart(2, "0");

test("attributes by their type", () => {
  const of = (value: number | string | readonly number[]) =>
    hex(onnxModel({ op: "X", type: "float32", attributes: { a: value }, inputs: {}, output: [] }));
  expect(of(1e-5)).toContain("0a0161" + "15acc52737" + "a00101");
  expect(of([3, 3])).toContain("0a0161" + "40034003" + "a00107");
  expect(of("SAME")).toContain("0a0161" + "220453414d45" + "a00103");
});
