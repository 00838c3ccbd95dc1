import { Linear, Sequential, Tanh } from "@halfstep/nn";
import { AdamW } from "@halfstep/optim";
import { cpuRuntime, flatten, Generator, oneHot } from "@halfstep/tensor";
import { multinomial, randint } from "@halfstep/tensor/functional";
import { expect, test } from "vitest";

const [states, actions, batch] = [5, 3, 64];

test("a categorical policy learns by its own draws which action pays in which state", async () => {
  const runtime = cpuRuntime();
  const generator = new Generator(7);
  const policy = new Sequential(
    new Linear(runtime, states, 16, { generator }),
    new Tanh(),
    new Linear(runtime, 16, actions, { generator }),
  );
  const optimizer = new AdamW(runtime.target, flatten([...policy.parameters()]), { lr: 0.03 });
  const play = () => {
    const state = randint(runtime, [batch], { high: states, dtype: "uint32", generator });
    const scores = policy.forward(oneHot(state, states));
    // Drawn on the device: nothing waits within the step.
    const action = multinomial(scores.detach().softmax(), 1, { generator });
    // Action s pays in state s, and in states 3 and 4 action 0 does.
    const paying = state.mul(state.lt(actions));
    const reward = action.reshape([batch]).eq(paying).to("float32");
    const advantage = reward.sub(reward.mean());
    const logProbability = scores.logSoftmax().gather(1, action).reshape([batch]);
    return { reward: reward.mean(), loss: logProbability.mul(advantage).mean().neg() };
  };
  const rewards: number[] = [];
  for (let step = 0; step < 80; step++) {
    const reward = await runtime.step(() => {
      const { reward, loss } = play();
      loss.backward();
      optimizer.step();
      optimizer.zeroGrad();
      return reward;
    });
    rewards.push(await reward.item());
  }
  const mean = (values: readonly number[]) => values.reduce((a, b) => a + b, 0) / values.length;
  expect(mean(rewards.slice(0, 3))).toBeLessThan(0.6);
  expect(mean(rewards.slice(-10))).toBeGreaterThan(0.9);
});
