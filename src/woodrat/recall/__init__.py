"""Recall: embedders, the vectors of what was asked, decided and answered, the gate and the threshold."""
