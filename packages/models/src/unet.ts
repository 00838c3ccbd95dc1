import {
  BatchNorm2d,
  Conv2d,
  ConvTranspose2d,
  Generator,
  type Layer,
  MaxPool2d,
  Module,
  ReLU,
  requireArguments,
  Sequential,
  Upsample,
} from "@halfstep/nn";
import { cat, pad, type Runtime, ShapeError, type Tensor } from "@halfstep/tensor/functional";

/** Options of {@link UNet}. */
export interface UNetOptions {
  /** Of the initial parameters. */
  readonly seed: number;
  /** Channels of the images. Default 3. */
  readonly channels?: number;
  /** Scores of each pixel. Default 2. */
  readonly classes?: number;
  /** Channels of the first level; every further one has twice as many. Default 64. */
  readonly width?: number;
  /** Enlarge by interpolation, instead of by transposed convolutions; a little more than half the parameters. Default false. */
  readonly bilinear?: boolean;
}

const withDefaults = ({
  channels = 3,
  classes = 2,
  width = 64,
  bilinear = false,
}: Omit<UNetOptions, "seed">) => ({ channels, classes, width, bilinear });

/** Shared by all parts. */
interface Parts {
  readonly runtime: Runtime;
  readonly generator: Generator;
  readonly bilinear: boolean;
}

/**
 * U-Net (Ronneberger et al. 2015) in the form and with the names of milesial/Pytorch-UNet: padded convolutions with batch norm, four
 * levels down and up. Images may have any size of at least 16×16.
 */
export class UNet extends Module {
  readonly inc: DoubleConv;
  readonly down1: Down;
  readonly down2: Down;
  readonly down3: Down;
  readonly down4: Down;
  readonly up1: Up;
  readonly up2: Up;
  readonly up3: Up;
  readonly up4: Up;
  readonly outc: OutConv;

  constructor(runtime: Runtime, options: UNetOptions) {
    super();
    requireArguments(
      "new UNet(runtime, { seed, channels?, classes?, width?, bilinear? })",
      runtime,
      options,
    );
    const { channels, classes, width, bilinear } = withDefaults(options);
    const parts: Parts = { runtime, generator: new Generator(options.seed), bilinear };
    const [w1, w2, w3, w4] = [width, 2 * width, 4 * width, 8 * width];
    // Interpolation keeps the number of channels, so the lower level has half as many.
    const factor = bilinear ? 2 : 1;
    this.inc = new DoubleConv(parts, channels, w1);
    this.down1 = new Down(parts, w1, w2);
    this.down2 = new Down(parts, w2, w3);
    this.down3 = new Down(parts, w3, w4);
    this.down4 = new Down(parts, w4, (2 * w4) / factor);
    this.up1 = new Up(parts, 2 * w4, w4 / factor);
    this.up2 = new Up(parts, w4, w3 / factor);
    this.up3 = new Up(parts, w3, w2 / factor);
    this.up4 = new Up(parts, w2, w1);
    this.outc = new OutConv(parts, w1, classes);
  }

  /** How many parameters a network of these options has, which is not built for that. 31,037,698 with the defaults. */
  static parameterCount(options: Omit<UNetOptions, "seed"> = {}): number {
    const { channels, classes, width, bilinear } = withDefaults(options);
    const twice = (from: number, to: number, middle = to): number =>
      9 * (from * middle + middle * to) + 2 * (middle + to);
    const factor = bilinear ? 2 : 1;
    let total = twice(channels, width) + (width + 1) * classes;
    for (let level = 1; level <= 4; level++) {
      const [above, below] = [width * 2 ** (level - 1), width * 2 ** level];
      total += twice(above, level === 4 ? below / factor : below);
      total += bilinear
        ? twice(below, level === 1 ? above : above / 2, below / 2)
        : twice(below, above) + 4 * below * above + above;
    }
    return total;
  }

  /** Two black images of 32×32 pixels. */
  override exampleInputs(): readonly [Tensor] {
    const { weight } = this.inc.doubleConv[0] as Conv2d;
    return [weight.runtime.zeros([2, 32, 32, weight.shape[2] as number])];
  }

  /**
   * @param x [batch, height, width, channels]
   * @returns logits [batch, height, width, classes]
   */
  forward(x: Tensor): Tensor {
    const [, height, width] = x.shape;
    if (x.rank !== 4 || !((height as number) >= 16 && (width as number) >= 16))
      throw new ShapeError(
        `UNet needs images [batch, height, width, channels] of at least 16×16 pixels, not [${x.shape}]`,
      );
    const x1 = this.inc.forward(x);
    const x2 = this.down1.forward(x1);
    const x3 = this.down2.forward(x2);
    const x4 = this.down3.forward(x3);
    let y = this.up1.forward(this.down4.forward(x4), x4);
    y = this.up2.forward(y, x3);
    y = this.up3.forward(y, x2);
    y = this.up4.forward(y, x1);
    return this.outc.forward(y);
  }
}

/** Two times a 3×3 convolution, batch norm and ReLU. */
class DoubleConv extends Module {
  readonly doubleConv: Sequential;

  constructor({ runtime, generator }: Parts, from: number, to: number, middle: number = to) {
    super();
    const layers = (inChannels: number, outChannels: number): readonly Layer[] => [
      new Conv2d(runtime, inChannels, outChannels, {
        kernelSize: 3,
        padding: 1,
        bias: false,
        generator,
      }),
      new BatchNorm2d(runtime, outChannels),
      new ReLU(),
    ];
    this.doubleConv = new Sequential(...layers(from, middle), ...layers(middle, to));
  }

  forward(x: Tensor): Tensor {
    return this.doubleConv.forward(x);
  }
}

class Down extends Module {
  readonly maxpoolConv: Sequential;

  constructor(parts: Parts, from: number, to: number) {
    super();
    this.maxpoolConv = new Sequential(
      new MaxPool2d({ kernelSize: 2 }),
      new DoubleConv(parts, from, to),
    );
  }

  forward(x: Tensor): Tensor {
    return this.maxpoolConv.forward(x);
  }
}

class Up extends Module {
  readonly up: Layer;
  readonly conv: DoubleConv;

  constructor(parts: Parts, from: number, to: number) {
    super();
    const { runtime, generator, bilinear } = parts;
    this.up = bilinear
      ? new Upsample({ scale: 2, mode: "bilinear", alignCorners: true })
      : new ConvTranspose2d(runtime, from, from / 2, { kernelSize: 2, stride: 2, generator });
    this.conv = new DoubleConv(parts, from, to, bilinear ? from / 2 : to);
  }

  /** @param beside the features of the contracting path at this size */
  forward(x: Tensor, beside: Tensor): Tensor {
    return this.conv.forward(cat([beside, paddedTo(this.up.forward(x), beside)], -1));
  }
}

/** Pooling rounds sizes down, so that twice the smaller one may be a pixel short. */
function paddedTo(x: Tensor, { shape }: Tensor): Tensor {
  const [height, width] = [1, 2].map((d) => (shape[d] as number) - (x.shape[d] as number)) as [
    number,
    number,
  ];
  if (height === 0 && width === 0) return x;
  const around = (missing: number): readonly [number, number] => {
    const before = Math.floor(missing / 2);
    return [before, missing - before];
  };
  return pad(x, [[0, 0], around(height), around(width), [0, 0]]);
}

class OutConv extends Module {
  readonly conv: Conv2d;

  constructor({ runtime, generator }: Parts, from: number, to: number) {
    super();
    this.conv = new Conv2d(runtime, from, to, { kernelSize: 1, generator });
  }

  forward(x: Tensor): Tensor {
    return this.conv.forward(x);
  }
}
