import { expect, it } from "vitest";
import { usedDeclarations } from "./used-functions.js";

const declarations = `struct Pair { first: u32 }
fn inner(x: f32) -> f32 {
  if (x > 0) { return x; }
  return 0;
}
fn outer(x: f32) -> f32 { return inner(x); }
@group(0) @binding(0) var<storage> x_data: array<f32>;
fn at_x(i: u32) -> f32 { return x_data[i]; }

fn at_x2(i: u32) -> f32 { return x_data[2u * i]; }
`;

it("leaves out functions that nothing used names", () => {
  const kept = usedDeclarations(declarations, "fn main() { at_x2(0u); }");
  expect(kept).toBe(`struct Pair { first: u32 }
@group(0) @binding(0) var<storage> x_data: array<f32>;
fn at_x2(i: u32) -> f32 { return x_data[2u * i]; }
`);
});

it("keeps what used functions call, and declarations that are no functions, without empty lines", () => {
  expect(usedDeclarations(declarations, "outer(at_x(1u)) + at_x2(2u)")).toBe(
    declarations.replace("\n\n", "\n"),
  );
  expect(usedDeclarations("", "main")).toBe("");
});
