import { expect, test } from "vitest";
import { requestDevice } from "./browser.js";
import { dawnNotLoaded } from "./dawn-not-loaded.js";
import {
  DeviceLostError,
  GpuError,
  MemoryBudgetError,
  NoAdapterError,
  ShaderError,
} from "./errors.js";

test("instanceof recognises errors by their brand, of another copy of the package too", () => {
  const errors = [
    [NoAdapterError, new NoAdapterError("none")],
    [DeviceLostError, new DeviceLostError("gpu", "unknown", "unplugged")],
    [MemoryBudgetError, new MemoryBudgetError(3, 2, 4)],
    [ShaderError, new ShaderError("gelu", 3, "no")],
    [GpuError, new GpuError("validation", "no")],
  ] as const;
  for (const [type, error] of errors) {
    for (const [other] of errors) expect(error instanceof other).toBe(other === type);
    const copy = Object.assign(new Error("x"), { [Symbol.for(`@halfstep/${error.name}`)]: true });
    expect(copy).toBeInstanceOf(type);
    expect(error).toBeInstanceOf(Error);
    expect(null).not.toBeInstanceOf(type);
  }
});

test("without navigator.gpu the browser's requestDevice says where to go", async () => {
  await expect(requestDevice()).rejects.toThrow("@halfstep/device/node");
});

test.each([
  ["ERR_MODULE_NOT_FOUND", "Cannot find package 'webgpu'", "run npm install webgpu"],
  ["MODULE_NOT_FOUND", "tried to access webgpu (a peer dependency)", "run npm install webgpu"],
  [
    "ERR_DLOPEN_FAILED",
    "libc.so.6: version `GLIBC_2.38' not found (required by dawn.node)\nmore",
    "libc.so.6: version `GLIBC_2.38' not found (required by dawn.node)",
  ],
])("Dawn that cannot be loaded says why: %s", (code, message, why) => {
  const cause = Object.assign(new Error(message), { code });
  const error = dawnNotLoaded(cause);
  expect(error).toBeInstanceOf(NoAdapterError);
  expect(error.cause).toBe(cause);
  expect(error.message).toBe(`the package \`webgpu\` (Dawn for Node) cannot be loaded: ${why}`);
});
