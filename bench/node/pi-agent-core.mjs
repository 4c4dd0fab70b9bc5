// Runs the benchmark on pi's agent, with a provider made as its documentation makes one for a server of one's own.
import { Agent } from '@earendil-works/pi-agent-core';
import { createModels, createProvider } from '@earendil-works/pi-ai';
import { openAICompletionsApi } from '@earendil-works/pi-ai/api/openai-completions.lazy';
import { main, add, countDelta, SYSTEM, TOOL_DESCRIPTION } from './harness.mjs';

const tool = {
  name: 'add', label: 'add', description: TOOL_DESCRIPTION,
  parameters: { type: 'object', properties: { a: { type: 'integer' }, b: { type: 'integer' } }, required: ['a', 'b'] },
  execute: async (_id, { a, b }) => ({ content: [{ type: 'text', text: add(a, b) }], details: {} }),
};

const models = createModels();

await main(async (base, id) => {
  const model = { id, name: id, api: 'openai-completions', provider: 'fake', baseUrl: base + '/v1', reasoning: false, input: ['text'],
    cost: { input: 3, output: 15, cacheRead: 0, cacheWrite: 0 }, contextWindow: 1_000_000, maxTokens: 8192 };
  if (!models.getModel('fake', id)) {
    models.setProvider(createProvider({ id: 'fake', name: 'fake', baseUrl: base + '/v1', models: [model], api: openAICompletionsApi(),
      auth: { apiKey: { name: 'fake', resolve: async () => ({ auth: { apiKey: 'not-a-key' } }) } } }));
  }
  const agent = new Agent({ initialState: { systemPrompt: SYSTEM, model, tools: [tool], thinkingLevel: 'off' }, streamFn: models.streamSimple.bind(models) });
  let text = '';
  agent.subscribe((event) => {
    if (event.type === 'message_update' && event.assistantMessageEvent.type === 'text_delta') countDelta();
    if (event.type === 'message_end' && event.message.role === 'assistant') {
      text = event.message.content.filter((part) => part.type === 'text').map((part) => part.text).join('');
    }
  });
  return {
    async run(prompt) {
      await agent.prompt(prompt);
      if (agent.state.errorMessage) throw new Error(agent.state.errorMessage);
      return text;
    },
  };
});
