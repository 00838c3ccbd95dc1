import { bytesPerElement, type Launch } from "@halfstep/device";

/** What a device surely achieves; estimates of time err on the long side. */
export interface DeviceRates {
  readonly bytesPerSecond: number;
  readonly operationsPerSecond: number;
}

/** Two cores with a software driver. */
export const softwareRates: DeviceRates = { bytesPerSecond: 4e9, operationsPerSecond: 20e9 };
/** A slow integrated GPU. */
export const hardwareRates: DeviceRates = { bytesPerSecond: 20e9, operationsPerSecond: 200e9 };

/** Browsers reset a device whose submit takes seconds: longer plans go in parts. */
const longestSubmit = 500;

/** Milliseconds that a launch takes at most, from the bytes that it touches and the operations that it does. */
export function estimatedMilliseconds<B>(
  { kernel, bindings, scalars }: Launch<B>,
  { bytesPerSecond, operationsPerSecond }: DeviceRates,
): number {
  let bytes = 0;
  for (const { length, dtype } of bindings) bytes += length * bytesPerElement(dtype);
  const operations = kernel.operations?.(scalars) ?? 0;
  return 1000 * Math.max(bytes / bytesPerSecond, operations / operationsPerSecond);
}

/** The positions at which the submits of these launches end: one submit, unless that would be estimated as too long. */
export function submitEnds<B>(launches: readonly Launch<B>[], rates: DeviceRates): number[] {
  const ends: number[] = [];
  let milliseconds = 0;
  for (const [i, launch] of launches.entries()) {
    const more = estimatedMilliseconds(launch, rates);
    if (i > 0 && milliseconds + more > longestSubmit) {
      ends.push(i);
      milliseconds = 0;
    }
    milliseconds += more;
  }
  ends.push(launches.length);
  return ends;
}
