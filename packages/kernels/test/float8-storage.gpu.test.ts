/**
 * A promise of the product: what kernels load and store as float8 has the same bits on a GPU, on every tier, as in TypeScript, and
 * products read it as it is.
 */
import type { DType, Hardware, Launch, LaunchTarget } from "@halfstep/device";
import { requestNullDevice } from "@halfstep/device/node";
import { requestTestDevice, testTiers } from "@halfstep/device/testing";
import { decodeArray, encodeArray, float8e4m3fn, float8e5m2 } from "@halfstep/formats";
import { describe, expect, it } from "vitest";
import {
  cpuTarget,
  deviceTarget,
  elementwise,
  identity,
  type MatmulAttributes,
  matmul,
  type ResidentTarget,
} from "../src/index.js";
import { defineKernel } from "../src/kernel.js";
import { bitsOf, differences, floats, patterns } from "./conversions.js";
import { deviceMismatches, testValues, withHardware } from "./harness.js";

const formats = { float8e4m3fn, float8e5m2 };
type Float8 = keyof typeof formats;
const dtypes: readonly Float8[] = ["float8e4m3fn", "float8e5m2"];

const tiers = await testTiers();

describe.each(tiers)("float8 storage, %s tier", (tier) => {
  async function cast(data: Uint8Array | Uint32Array, from: DType, to: DType) {
    const device = await requestTestDevice({ tier });
    const bind = (dtype: DType) => {
      const buffer = device.allocate(data.length * 4);
      return { buffer, offset: 0, length: data.length, dtype, shape: [data.length] };
    };
    const [x, y] = [bind(from), bind(to)];
    device.write(x.buffer, 0, data as Uint8Array<ArrayBuffer>);
    const target = device.encoder();
    target.launch(elementwise(identity, [x], y));
    target.submit();
    const bytes = await device.read(y.buffer, 0, data.length * (to === "float32" ? 4 : 1));
    for (const { buffer } of [x, y]) device.release(buffer);
    return bytes;
  }

  it.each(dtypes)("loads all codes and stores a million patterns: %s", async (dtype) => {
    const format = formats[dtype];
    const codes = Uint8Array.from({ length: 256 }, (_, code) => code);
    const loaded = new Uint32Array(await cast(codes, dtype, "float32"));
    expect(differences(codes, loaded, bitsOf(decodeArray(codes, format)))).toEqual([]);
    const stored = new Uint8Array(await cast(patterns, "float32", dtype));
    const want = encodeArray(floats, format, undefined, { saturate: true });
    expect(differences(patterns, stored, want)).toEqual([]);
  });
});

it("float8 elements are written to targets and read back, rounded and saturated", async () => {
  async function roundTrip<B>(target: ResidentTarget<B>, dtype: Float8): Promise<number[]> {
    const binding = { buffer: target.allocate(5), offset: 0, length: 5, dtype };
    target.write(binding, [1, -1.1, 1e6, 0.5, 3]);
    return [...(await target.read(binding))];
  }
  const gpu = deviceTarget(await requestTestDevice());
  for (const [dtype, want] of [
    ["float8e4m3fn", [1, -1.125, 448, 0.5, 3]],
    ["float8e5m2", [1, -1, 57_344, 0.5, 3]],
  ] as const) {
    expect(await roundTrip(cpuTarget(), dtype)).toEqual(want);
    expect(await roundTrip(gpu, dtype)).toEqual(want);
  }
});

interface Product extends MatmulAttributes {
  readonly a: DType;
  readonly b: DType;
  readonly out: DType;
}

const operandsOf = ({ m, n, k, a, b, out }: Product) =>
  ({
    a: { values: testValues(m * k, 1), dtype: a },
    b: { values: testValues(k * n, 2), dtype: b },
    out: { values: m * n, dtype: out },
  }) as const;

describe("products of float8", () => {
  it("equal the reference", async () => {
    const device = await requestTestDevice();
    const products: readonly Product[] = [
      { m: 37, n: 36, k: 40, a: "float8e4m3fn", b: "float8e5m2", out: "float32" },
      { m: 9, n: 21, k: 33, transB: true, a: "float16", b: "float8e4m3fn", out: "float8e5m2" },
      // Stored by pairs in other dtypes.
      { m: 8, n: 12, k: 20, a: "float16", b: "float16", out: "float8e4m3fn" },
      { m: 6, n: 6, k: 9, a: "float32", b: "float32", out: "float8e5m2" },
    ];
    const found: string[] = [];
    for (const product of products)
      found.push(
        ...(await deviceMismatches(
          device,
          operandsOf(product),
          (target, operands) => matmul(target, operands, product),
          { out: { relative: 2 ** -22, absolute: 0 } },
        )),
      );
    expect(found).toEqual([]);
  });

  const gpu: Hardware = {
    class: "a real one",
    workgroupBytes: 65_536,
    workgroupInvocations: 256,
    matrixSubgroupSize: 32,
    subgroupMatrices: [],
  };

  it("equal the reference in blocks of workgroup memory", async () => {
    const device = await requestTestDevice();
    const product: Product = {
      ...{ m: 66, n: 68, k: 37, transB: true },
      ...{ a: "float8e4m3fn", b: "float8e4m3fn", out: "float32" },
    };
    const found = await deviceMismatches(
      device,
      operandsOf(product),
      (target, operands) => matmul(withHardware(target, gpu), operands, product),
      { out: { relative: 2 ** -22, absolute: 0 } },
    );
    expect(found).toEqual([]);
  });

  it("are multiplied as float16 by hardware matrices", async () => {
    const device = await requestNullDevice();
    const complaints: unknown[] = [];
    for (const [a, b] of [
      ["float8e4m3fn", "float8e5m2"],
      ["float16", "float8e4m3fn"],
    ] as const) {
      const launches: Launch<undefined>[] = [];
      const recorder: LaunchTarget<undefined> = {
        allocate: () => undefined,
        launch: (launch) => launches.push(launch),
      };
      const bind = (dtype: DType) =>
        ({ buffer: undefined, offset: 0, length: 64 * 64, dtype }) as const;
      const operands = { a: bind(a), b: bind(b), out: bind("float32") };
      matmul(recorder, operands, { m: 64, n: 64, k: 64, transB: true });
      const [{ kernel, bindings }] = launches as [Launch<undefined>];
      const shape = { m: 16, n: 16, k: 16, component: "f16" } as const;
      const hardware = { ...gpu, subgroupMatrices: [shape] };
      const { code } = kernel.program({ tier: "native", subgroupSize: 32, hardware, bindings });
      expect(code).toContain("subgroupMatrixMultiplyAccumulate");
      device.pushErrorScope("validation");
      const { messages } = await device.createShaderModule({ code }).getCompilationInfo();
      complaints.push(...messages.map(({ message }) => message), await device.popErrorScope());
    }
    device.destroy();
    expect(complaints).toEqual([null, null]);
  });
});

describe("storage of 8 bits", () => {
  it("is loaded in units of any size, and stored in quads only", () => {
    const program = (unit: 1 | 2 | 4, access: "read" | "write"): string =>
      defineKernel({
        name: "any",
        bindings: [{ name: "x", access, unit }],
        body: () => "load_x(0u)",
        workgroups: () => [1, 1, 1],
        reference() {},
      }).program({ tier: "native", subgroupSize: 0, bindings: [{ dtype: "float8e5m2" }] }).code;
    expect(program(2, "read")).toContain("fn load_x(i: u32) -> vec2<f32>");
    expect(() => program(2, "write")).toThrow("two elements at a time, which 8-bit storage cannot");
    expect(() => program(1, "write")).toThrow("one element at a time, which 8-bit storage cannot");
  });
});
