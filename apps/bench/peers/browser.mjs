// What browser libraries expect of their environment, in Node: `navigator.gpu` by Dawn, and what Node 20 lacks of JavaScript.
import * as float16 from "@petamoriken/float16";
import { create, globals } from "webgpu";

const devices = [];

/** Resolves when all that was submitted to any device is done. */
export const drain = async () => {
  for (const device of devices) await device.queue.onSubmittedWorkDone();
};

/**
 * Provides Dawn as the WebGPU of a browser.
 * @param {{ adapter: string | undefined, onDevice: (device: GPUDevice) => void, wait: <T>(promise: Promise<T>) => Promise<T> }} options
 * The option `adapter` is its name (by default Dawn's choice). The callback `onDevice` gets each device before the library. The
 * function `wait` awaits the library's own waits for the device.
 */
export const provideWebGpu = ({ adapter, onDevice, wait }) => {
  Object.assign(globalThis, globals);
  const gpu = create([
    "enable-dawn-features=allow_unsafe_apis,vulkan_enable_f16_on_nvidia",
    ...(adapter ? [`adapter=${adapter}`] : []),
  ]);
  // Dawn's bindings die when this object is collected.
  globalThis.dawn = gpu;
  replaceMethod(GPUAdapter, "requestDevice", (original) => {
    return async function (...args) {
      const device = await original.apply(this, args);
      devices.push(device);
      onDevice(device);
      return device;
    };
  });
  for (const [owner, method] of [
    [GPUBuffer, "mapAsync"],
    [GPUQueue, "onSubmittedWorkDone"],
  ])
    replaceMethod(owner, method, (original) => {
      return function (...args) {
        return wait(original.apply(this, args));
      };
    });
  replaceMethod(GPUQueue, "writeBuffer", (original) => {
    return function (buffer, offset, data, ...range) {
      return original.call(this, buffer, offset, ...unshared(data, ...range));
    };
  });
  provideNavigator(gpu);
};

export const provideNavigator = (gpu) => {
  const navigator = {
    gpu,
    userAgent: "node",
    platform: process.platform,
    hardwareConcurrency: 1,
    language: "en",
    maxTouchPoints: 0,
    vendor: "",
  };
  Object.defineProperty(globalThis, "navigator", {
    value: navigator,
    configurable: true,
    writable: true,
  });
};

/** Float16Array and its relatives, and methods of iterators. */
export const provideNewerJavaScript = () => {
  const iterators = Object.getPrototypeOf(Object.getPrototypeOf([].values()));
  for (const method of ["map", "filter", "flatMap", "forEach", "reduce", "some", "every", "find"])
    iterators[method] ??= function (...args) {
      const result = [...this][method](...args);
      return Array.isArray(result) ? result.values() : result;
    };
  iterators.toArray ??= function () {
    return [...this];
  };
  globalThis.Float16Array ??= float16.Float16Array;
  Math.f16round ??= float16.f16round;
  DataView.prototype.getFloat16 ??= function (...args) {
    return float16.getFloat16(this, ...args);
  };
  DataView.prototype.setFloat16 ??= function (...args) {
    return float16.setFloat16(this, ...args);
  };
};

const replaceMethod = ({ prototype }, name, make) => {
  prototype[name] = make(prototype[name]);
};

// Dawn in Node takes no views of shared memory; onnxruntime has nothing else.
const unshared = (data, start = 0, size = undefined) => {
  const shared = ArrayBuffer.isView(data) ? data.buffer : data;
  if (!(shared instanceof SharedArrayBuffer))
    return size === undefined ? [data, start] : [data, start, size];
  const unit = data.BYTES_PER_ELEMENT ?? 1;
  const from = (data.byteOffset ?? 0) + start * unit;
  const bytes = size === undefined ? data.byteLength - start * unit : size * unit;
  return [new Uint8Array(shared, from, bytes).slice()];
};
