import {
  BatchNorm2d,
  Conv2d,
  Generator,
  type Initializer,
  kaimingNormal,
  type Layer,
  Linear,
  MaxPool2d,
  Module,
  requireArguments,
  Sequential,
  type TorchLayout,
} from "@halfstep/nn";
import {
  avgPool2d,
  mean,
  pad,
  type Runtime,
  ShapeError,
  type Tensor,
} from "@halfstep/tensor/functional";

/** Options of {@link ResNet}. */
export interface ResNetOptions {
  /** Of the initial parameters. */
  readonly seed: number;
  /** Blocks of each stage: three stages or four. */
  readonly layers: readonly number[];
  /** Two 3×3 convolutions, or 1×1, 3×3 and 1×1 with four times the channels. Default "basic". */
  readonly block?: "basic" | "bottleneck";
  /** Default 1000. */
  readonly classes?: number;
  /** Channels of the images. Default 3. */
  readonly channels?: number;
  /** Channels of the first stage; every further one has twice as many. Default 64. */
  readonly width?: number;
  /** A 7×7 convolution and max pooling, which make images four times smaller, or a 3×3 convolution. Default "imagenet". */
  readonly stem?: "imagenet" | "cifar";
  /**
   * The shortcut between stages of different shapes: a 1×1 convolution ("projection", option B of the paper), or every second
   * pixel with zeros as the channels that are new ("padding", option A). Default "projection".
   */
  readonly shortcut?: "projection" | "padding";
  /** Start every block as the identity: the last batch norm of its branch has weight 0 (Goyal et al. 2017). Default false. */
  readonly zeroInitResidual?: boolean;
}

type Preset = Partial<Omit<ResNetOptions, "seed">> & Pick<ResNetOptions, "seed">;

/** ResNet-18 for images like ImageNet's: 11,689,512 parameters with 1000 classes. */
export const resnet18 = (runtime: Runtime, options: Preset): ResNet =>
  new ResNet(runtime, { layers: [2, 2, 2, 2], ...options });

/** ResNet-50 for images like ImageNet's: 25,557,032 parameters with 1000 classes. */
export const resnet50 = (runtime: Runtime, options: Preset): ResNet =>
  new ResNet(runtime, { layers: [3, 4, 6, 3], block: "bottleneck", ...options });

/**
 * ResNet-20 for images like CIFAR-10's (He et al. 2015, section 4.2): 272,474 parameters with projections, which is the
 * default here, and 269,722 with padding, which is the paper's.
 */
export const resnet20 = (runtime: Runtime, options: Preset): ResNet =>
  new ResNet(runtime, { layers: [3, 3, 3], width: 16, classes: 10, stem: "cifar", ...options });

/** ResNet-32 for images like CIFAR-10's: 464,154 parameters with padding. Else as {@link resnet20}. */
export const resnet32 = (runtime: Runtime, options: Preset): ResNet =>
  resnet20(runtime, { layers: [5, 5, 5], ...options });

/** ResNet-44 for images like CIFAR-10's: 658,586 parameters with padding. Else as {@link resnet20}. */
export const resnet44 = (runtime: Runtime, options: Preset): ResNet =>
  resnet20(runtime, { layers: [7, 7, 7], ...options });

/** ResNet-56 for images like CIFAR-10's: 853,018 parameters with padding. Else as {@link resnet20}. */
export const resnet56 = (runtime: Runtime, options: Preset): ResNet =>
  resnet20(runtime, { layers: [9, 9, 9], ...options });

/** He et al., with the fan of the backward pass, as torchvision has it. */
const heNormal: Initializer = (shape, generator) =>
  kaimingNormal(shape, generator, { mode: "fanOut", nonlinearity: "relu" });

/** Shared by all blocks. */
interface Parts {
  conv(inChannels: number, outChannels: number, kernelSize: number, stride?: number): Conv2d;
  norm(channels: number): BatchNorm2d;
  /** Batch norm at the end of a branch. */
  lastNorm(channels: number): BatchNorm2d;
  shortcut(inChannels: number, outChannels: number, stride: number): Layer;
}

/**
 * Deep residual network (He et al. 2015) in torchvision's form, whose checkpoints load by `loadTorchStateDict`: a stem, three or
 * four stages of blocks, the mean over all pixels, and a linear layer. Images may have any size.
 */
export class ResNet extends Module {
  readonly conv1: Conv2d;
  readonly bn1: BatchNorm2d;
  readonly layer1: Sequential;
  readonly layer2: Sequential;
  readonly layer3: Sequential;
  readonly layer4: Sequential | undefined;
  readonly fc: Linear;
  readonly #pool: MaxPool2d | undefined;

  constructor(runtime: Runtime, options: ResNetOptions) {
    super();
    requireArguments(
      "new ResNet(runtime, { layers, seed, block?, classes?, channels?, width?, stem?, shortcut?, zeroInitResidual? })",
      runtime,
      options,
    );
    const { layers, block, classes, channels, width, stem, shortcut } = withDefaults(options);
    const generator = new Generator(options.seed);
    const conv: Parts["conv"] = (inChannels, outChannels, kernelSize, stride = 1) =>
      new Conv2d(runtime, inChannels, outChannels, {
        kernelSize,
        stride,
        padding: (kernelSize - 1) / 2,
        bias: false,
        weightInit: heNormal,
        generator,
      });
    const norm: Parts["norm"] = (size) => new BatchNorm2d(runtime, size);
    const parts: Parts = {
      conv,
      norm,
      lastNorm: options.zeroInitResidual
        ? (size) => new BatchNorm2d(runtime, size, { initialWeight: 0 })
        : norm,
      shortcut: (inChannels, outChannels, stride) =>
        shortcut === "padding"
          ? new PaddedShortcut(outChannels - inChannels, stride)
          : new Sequential(conv(inChannels, outChannels, 1, stride), norm(outChannels)),
    };
    const Block = block === "basic" ? BasicBlock : Bottleneck;
    let inChannels = width;
    const stages = layers.map((count, stage) => {
      const size = width * 2 ** stage;
      const blocks = Array.from({ length: count }, (_, i) => {
        const made = new Block(parts, inChannels, size, i === 0 && stage > 0 ? 2 : 1);
        inChannels = size * Block.expansion;
        return made;
      });
      return new Sequential(...blocks);
    });
    this.conv1 = stem === "imagenet" ? conv(channels, width, 7, 2) : conv(channels, width, 3);
    this.bn1 = norm(width);
    this.#pool =
      stem === "imagenet" ? new MaxPool2d({ kernelSize: 3, stride: 2, padding: 1 }) : undefined;
    [this.layer1, this.layer2, this.layer3] = stages as [Sequential, Sequential, Sequential];
    this.layer4 = stages[3];
    this.fc = new Linear(runtime, inChannels, classes, { generator });
  }

  /** How many parameters a network of these options has, which is not built for that. */
  static parameterCount(options: Omit<ResNetOptions, "seed">): number {
    const { layers, block, classes, channels, width, stem, shortcut } = withDefaults(options);
    const isBasic = block === "basic";
    const conv = (from: number, to: number, kernel: number): number => from * to * kernel ** 2;
    const norm = (size: number): number => 2 * size;
    let inChannels = width;
    let total = conv(channels, width, stem === "imagenet" ? 7 : 3) + norm(width);
    for (const [stage, count] of layers.entries()) {
      const size = width * 2 ** stage;
      const outChannels = size * (isBasic ? 1 : Bottleneck.expansion);
      for (let i = 0; i < count; i++) {
        total += isBasic
          ? conv(inChannels, size, 3) + conv(size, size, 3) + 2 * norm(size)
          : conv(inChannels, size, 1) +
            conv(size, size, 3) +
            conv(size, outChannels, 1) +
            2 * norm(size) +
            norm(outChannels);
        if (shortcut === "projection" && i === 0 && (stage > 0 || inChannels !== outChannels))
          total += conv(inChannels, outChannels, 1) + norm(outChannels);
        inChannels = outChannels;
      }
    }
    return total + (inChannels + 1) * classes;
  }

  /** Networks for CIFAR-10 that are not torchvision's often call the last layer `linear`. */
  override get torchLayout(): TorchLayout {
    return { aliases: { "linear.weight": "fc.weight", "linear.bias": "fc.bias" } };
  }

  /** Two black images, of 64×64 pixels, or of 32×32 for the small stem. */
  override exampleInputs(): readonly [Tensor] {
    const { runtime, shape } = this.conv1.weight;
    const size = this.#pool ? 64 : 32;
    return [runtime.zeros([2, size, size, shape[2] as number])];
  }

  /**
   * @param x [batch, height, width, channels]
   * @returns logits [batch, classes]
   */
  forward(x: Tensor): Tensor {
    let y = this.bn1.forward(this.conv1.forward(x)).relu();
    if (this.#pool) y = this.#pool.forward(y);
    for (const stage of [this.layer1, this.layer2, this.layer3, this.layer4])
      if (stage) y = stage.forward(y);
    return this.fc.forward(mean(y, [1, 2]));
  }
}

function withDefaults({
  layers,
  block = "basic",
  classes = 1000,
  channels = 3,
  width = 64,
  stem = "imagenet",
  shortcut = "projection",
}: Omit<ResNetOptions, "seed">) {
  if (layers.length < 3 || layers.length > 4 || layers.some((count) => !(count >= 1)))
    throw new ShapeError(`ResNet: layers [${layers}] must be three or four numbers of blocks`);
  return { layers, block, classes, channels, width, stem, shortcut };
}

const joinIn = (
  { shortcut }: Parts,
  inChannels: number,
  outChannels: number,
  stride: number,
): Layer | undefined =>
  stride !== 1 || inChannels !== outChannels
    ? shortcut(inChannels, outChannels, stride)
    : undefined;

const joined = (branch: Tensor, x: Tensor, downsample: Layer | undefined): Tensor =>
  branch.add(downsample ? downsample.forward(x) : x).relu();

/** Networks for CIFAR-10 that are not torchvision's often call the projection `shortcut`. */
const shortcutLayout: TorchLayout = {
  aliases: Object.fromEntries(
    [
      "0.weight",
      ...["weight", "bias", "running_mean", "running_var", "num_batches_tracked"].map(
        (name) => `1.${name}`,
      ),
    ].map((name) => [`shortcut.${name}`, `downsample.${name}`]),
  ),
};

class BasicBlock extends Module {
  static readonly expansion: number = 1;
  readonly conv1: Conv2d;
  readonly bn1: BatchNorm2d;
  readonly conv2: Conv2d;
  readonly bn2: BatchNorm2d;
  readonly downsample: Layer | undefined;

  constructor(parts: Parts, inChannels: number, size: number, stride: number) {
    super();
    this.conv1 = parts.conv(inChannels, size, 3, stride);
    this.bn1 = parts.norm(size);
    this.conv2 = parts.conv(size, size, 3);
    this.bn2 = parts.lastNorm(size);
    this.downsample = joinIn(parts, inChannels, size, stride);
  }

  override get torchLayout(): TorchLayout {
    return shortcutLayout;
  }

  forward(x: Tensor): Tensor {
    const y = this.bn1.forward(this.conv1.forward(x)).relu();
    return joined(this.bn2.forward(this.conv2.forward(y)), x, this.downsample);
  }
}

/** The stride is in the 3×3 convolution, as in torchvision ("ResNet v1.5"), and not in the first 1×1 one. */
class Bottleneck extends Module {
  static readonly expansion: number = 4;
  readonly conv1: Conv2d;
  readonly bn1: BatchNorm2d;
  readonly conv2: Conv2d;
  readonly bn2: BatchNorm2d;
  readonly conv3: Conv2d;
  readonly bn3: BatchNorm2d;
  readonly downsample: Layer | undefined;

  constructor(parts: Parts, inChannels: number, size: number, stride: number) {
    super();
    const outChannels = size * Bottleneck.expansion;
    this.conv1 = parts.conv(inChannels, size, 1);
    this.bn1 = parts.norm(size);
    this.conv2 = parts.conv(size, size, 3, stride);
    this.bn2 = parts.norm(size);
    this.conv3 = parts.conv(size, outChannels, 1);
    this.bn3 = parts.lastNorm(outChannels);
    this.downsample = joinIn(parts, inChannels, outChannels, stride);
  }

  override get torchLayout(): TorchLayout {
    return shortcutLayout;
  }

  forward(x: Tensor): Tensor {
    let y = this.bn1.forward(this.conv1.forward(x)).relu();
    y = this.bn2.forward(this.conv2.forward(y)).relu();
    return joined(this.bn3.forward(this.conv3.forward(y)), x, this.downsample);
  }
}

/** Every stride-th pixel, and zeros as further channels, half of them before the others. */
class PaddedShortcut extends Module {
  readonly added: number;
  readonly stride: number;

  constructor(added: number, stride: number) {
    super();
    this.added = added;
    this.stride = stride;
  }

  forward(x: Tensor): Tensor {
    const pixels = this.stride === 1 ? x : avgPool2d(x, { window: 1, stride: this.stride });
    const before = Math.floor(this.added / 2);
    return pad(pixels, [
      [0, 0],
      [0, 0],
      [0, 0],
      [before, this.added - before],
    ]);
  }
}
