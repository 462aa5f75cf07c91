"""Reinforcement learning with gymnasium: PPO on CartPole, the policy and the loss compiled."""
import gymnasium as gym
import numpy as np
import torch
import torch.nn as nn
from steady import Steady, options

ENVS, ROLLOUT, EPOCHS, MINIBATCHES = 8, 32, 4, 4


class Agent(nn.Module):
    def __init__(self, observations, actions, width):
        super().__init__()
        self.critic = nn.Sequential(
            nn.Linear(observations, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, 1)
        )
        self.actor = nn.Sequential(
            nn.Linear(observations, width), nn.Tanh(), nn.Linear(width, width), nn.Tanh(), nn.Linear(width, actions)
        )

    def forward(self, observation):
        return torch.log_softmax(self.actor(observation), -1), self.critic(observation).squeeze(-1)


def main():
    args = options(cpu=1600, cuda=1600)
    torch.manual_seed(0)
    envs = gym.vector.SyncVectorEnv([lambda: gym.make("CartPole-v1") for _ in range(ENVS)])
    agent = Agent(4, 2, 512 if args.device == "cuda" else 128).to(args.device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)

    @torch.compile
    def act(observation):
        logits, value = agent(observation)
        action = torch.multinomial(logits.exp(), 1).squeeze(-1)
        return action, logits.gather(-1, action[:, None]).squeeze(-1), value

    @torch.compile
    def ppo_loss(observation, action, old, advantage, returns):
        logits, value = agent(observation)
        new = logits.gather(-1, action[:, None]).squeeze(-1)
        ratio = (new - old).exp()
        advantage = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
        policy = torch.max(-advantage * ratio, -advantage * ratio.clamp(0.8, 1.2)).mean()
        entropy = -(logits.exp() * logits).sum(-1).mean()
        return policy - 0.01 * entropy + 0.5 * (value - returns).square().mean()

    steady = Steady(args.steps, args.device)
    observation, _ = envs.reset(seed=0)
    while steady.done < args.steps:
        steps = []
        with torch.no_grad():
            for _ in range(ROLLOUT):
                state = torch.as_tensor(observation, dtype=torch.float32, device=args.device)
                action, logprob, value = act(state)
                observation, reward, done, cut, _ = envs.step(action.cpu().numpy())
                ended = torch.as_tensor(np.logical_or(done, cut), dtype=torch.float32, device=args.device)
                reward = torch.as_tensor(reward, dtype=torch.float32, device=args.device)
                steps.append((state, action, logprob, value, reward, ended))
            states, actions, logprobs, values, rewards, ends = map(torch.stack, zip(*steps))
            advantages, last = torch.zeros_like(rewards), torch.zeros(ENVS, device=args.device)
            for t in reversed(range(ROLLOUT - 1)):
                delta = rewards[t] + 0.99 * values[t + 1] * (1 - ends[t]) - values[t]
                last = delta + 0.99 * 0.95 * (1 - ends[t]) * last
                advantages[t] = last
            returns = advantages + values
        batch = [t.flatten(0, 1) for t in (states, actions, logprobs, advantages, returns)]
        for _ in range(EPOCHS):
            for rows in torch.randperm(ENVS * ROLLOUT, device=args.device).chunk(MINIBATCHES):
                optimizer.zero_grad()
                ppo_loss(*(t[rows] for t in batch)).backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
        steady.step(EPOCHS * MINIBATCHES)
    steady.show()


if __name__ == "__main__":
    main()
