import { ResNet, type ResNetOptions } from "@halfstep/models";
import type { Runtime } from "@halfstep/tensor";
import type { View } from "./data.js";

/** Names of the architectures, for `--arch`. */
export const architectures = ["resnet18", "resnet20", "resnet34", "resnet50"] as const;
export type Architecture = (typeof architectures)[number];

export interface ModelOptions {
  readonly arch: Architecture;
  /** Channels of the first stage. Default: 64, and 16 for resnet20. */
  readonly width?: number | undefined;
  /** Default: "imagenet" for images from 96 pixels on, but for resnet20. */
  readonly stem?: ResNetOptions["stem"] | undefined;
}

/** The options of a network, saved with it. */
export type NetworkOptions = Omit<ResNetOptions, "seed">;

const layers: Readonly<
  Record<Architecture, Pick<ResNetOptions, "layers" | "block" | "width" | "stem">>
> = {
  resnet18: { layers: [2, 2, 2, 2] },
  resnet20: { layers: [3, 3, 3], width: 16, stem: "cifar" },
  resnet34: { layers: [3, 4, 6, 3] },
  resnet50: { layers: [3, 4, 6, 3], block: "bottleneck" },
};

/** An architecture for images of some kind. The stem that makes images four times smaller is not suited to small ones. */
export function networkFor(
  { arch, width, stem }: ModelOptions,
  { classes, channels, size }: View,
): NetworkOptions {
  const standard = layers[arch];
  return {
    ...standard,
    ...(width !== undefined && { width }),
    stem: stem ?? standard.stem ?? (size < 96 ? "cifar" : "imagenet"),
    classes: classes.length,
    channels,
  };
}

/** The network, its parameters drawn from a seed. */
export const networkOf = (runtime: Runtime, options: NetworkOptions, seed: number): ResNet =>
  new ResNet(runtime, { ...options, seed });
