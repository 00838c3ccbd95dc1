import type { Tensor } from "@halfstep/tensor/functional";
import { type Layer, Module } from "../module.js";

/** Layers one after the other. As in torch their names are their places: "0.weight". */
export class Sequential extends Module {
  readonly [place: number]: Layer;
  readonly length: number;

  constructor(...layers: readonly Layer[]) {
    super();
    const place = layers.findIndex((layer) => typeof layer?.forward !== "function");
    if (place >= 0)
      throw new TypeError(
        `new Sequential(...layers): layer ${place} is no module; pass layers one by one, each with a forward(x)`,
      );
    this.length = layers.length;
    Object.assign(this, layers);
  }

  forward(x: Tensor): Tensor {
    return Array.from(this as ArrayLike<Layer>).reduce((value, layer) => layer.forward(value), x);
  }
}
