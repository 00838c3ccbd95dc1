import type { Scene } from "../src/scene.js";

/** A grey scene whose pixels tell where they are. */
export function numbered(height: number, width: number, classes = 2): Scene {
  const places = Array.from({ length: height * width }, (_, i) => i);
  return {
    ...{ name: `${width}×${height}`, height, width, channels: 1 },
    pixels: Uint8Array.from(places, (i) => i % 256),
    labels: Uint8Array.from(places, (i) => i % classes),
  };
}
