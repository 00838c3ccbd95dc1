import { ResNet, type ResNetOptions } from "@halfstep/models";
import type { Runtime } from "@halfstep/tensor";
import type { View } from "./data.js";

/** Names of the architectures, for `--arch`. */
export const architectures = [
  "resnet18",
  "resnet20",
  "resnet32",
  "resnet34",
  "resnet44",
  "resnet50",
  "resnet56",
] as const;
export type Architecture = (typeof architectures)[number];

export interface ModelOptions {
  readonly arch: Architecture;
  /** Channels of the first stage. Default: 64, and 16 for the networks of CIFAR-10. */
  readonly width?: number | undefined;
  /** Default: "imagenet" for images from 96 pixels on, but for the networks of CIFAR-10. */
  readonly stem?: ResNetOptions["stem"] | undefined;
  /** Default: "projection". */
  readonly shortcut?: ResNetOptions["shortcut"] | undefined;
}

/** The options of a network, saved with it. */
export type NetworkOptions = Omit<ResNetOptions, "seed">;

/** A network of He et al. 2015, section 4.2, for images like CIFAR-10's. */
const forCifar = (blocks: number) =>
  ({ layers: [blocks, blocks, blocks], width: 16, stem: "cifar" }) as const;

const layers: Readonly<
  Record<Architecture, Pick<ResNetOptions, "layers" | "block" | "width" | "stem">>
> = {
  resnet18: { layers: [2, 2, 2, 2] },
  resnet20: forCifar(3),
  resnet32: forCifar(5),
  resnet34: { layers: [3, 4, 6, 3] },
  resnet44: forCifar(7),
  resnet50: { layers: [3, 4, 6, 3], block: "bottleneck" },
  resnet56: forCifar(9),
};

/** An architecture for images of some kind. The stem that makes images four times smaller is not suited to small ones. */
export function networkFor(
  { arch, width, stem, shortcut }: ModelOptions,
  { classes, channels, size }: View,
): NetworkOptions {
  const standard = layers[arch];
  return {
    ...standard,
    ...(width !== undefined && { width }),
    ...(shortcut !== undefined && { shortcut }),
    stem: stem ?? standard.stem ?? (size < 96 ? "cifar" : "imagenet"),
    classes: classes.length,
    channels,
  };
}

/** Pixels of a side that networks of a kind usually see. */
export const usualImageSize = (stem: ResNetOptions["stem"]): number =>
  stem === "cifar" ? 32 : 224;

/** The stem of an architecture that has one of its own. */
export const stemOf = (arch: Architecture): ResNetOptions["stem"] => layers[arch].stem;

/** The network, its parameters drawn from a seed. */
export const networkOf = (runtime: Runtime, options: NetworkOptions, seed: number): ResNet =>
  new ResNet(runtime, { ...options, seed });
