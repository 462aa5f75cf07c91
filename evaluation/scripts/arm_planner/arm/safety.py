def slow_down(state, most=6.0):
    fastest = state.abs().max().item()
    return state * min(1.0, most / max(fastest, 1e-6))
